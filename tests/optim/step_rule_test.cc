// Step rules against references written in double precision from the documentation of torch.optim.
#include <sotto/optim/step_rule.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/base/error.h>
#include <sotto/base/names.h>
#include <sotto/optim/step_rule_info.h>

namespace sotto::test::step_rule_test {

namespace {

constexpr std::size_t kDimension = 37;
constexpr Round kRounds = 200;

/// One parameter in double precision, with up to two moments.
struct Reference {
  double x = 0;
  double first = 0;
  double second = 0;
};
using ReferenceStep = std::function<void(Reference&, double gradient, int t)>;

/// A gradient that depends on x, so that an error in one step shows in all later ones.
double gradient_at(double x, std::size_t i, Round t) {
  return 0.3 * x + std::sin(0.7 * static_cast<double>(i) + 0.05 * static_cast<double>(t));
}

std::vector<float> waves(std::size_t count, Round phase) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    values[i] = static_cast<float>(gradient_at(1, i, phase));
  }
  return values;
}

/// Runs the rule and the reference side by side and returns the largest difference of any x.
double largest_difference(const StepRuleOptions& options, const ReferenceStep& step) {
  const auto rule = make_step_rule(options);
  rule->resize(one_tensor(kDimension));
  std::vector<float> x(kDimension);
  std::vector<float> g(kDimension);
  std::vector<float> d(kDimension, std::numeric_limits<float>::quiet_NaN());
  std::vector<Reference> reference(kDimension);
  for (std::size_t i = 0; i < kDimension; ++i) {
    x[i] = static_cast<float>(i) / 8 - 2;
    reference[i].x = static_cast<double>(x[i]);
  }
  double largest = 0;
  for (Round t = 0; t < kRounds; ++t) {
    for (std::size_t i = 0; i < kDimension; ++i) {
      g[i] = static_cast<float>(gradient_at(static_cast<double>(x[i]), i, t));
      step(reference[i], gradient_at(reference[i].x, i, t), static_cast<int>(t) + 1);
    }
    REQUIRE(rule->direction(t, x, g, d).ok());
    for (std::size_t i = 0; i < kDimension; ++i) {
      x[i] -= d[i];
      largest = std::fmax(largest, std::fabs(static_cast<double>(x[i]) - reference[i].x));
    }
  }
  return largest;
}

ReferenceStep sgd_reference(double rate, double momentum, bool nesterov, double decay) {
  return [=](Reference& p, double g, int t) {
    g += decay * p.x;
    if (momentum != 0) {
      p.first = t == 1 ? g : momentum * p.first + g;
      g = nesterov ? g + momentum * p.first : p.first;
    }
    p.x -= rate * g;
  };
}

ReferenceStep adam_reference(double rate, double beta1, double beta2, double epsilon, double decay,
                             bool decoupled) {
  return [=](Reference& p, double g, int t) {
    if (decoupled) {
      p.x *= 1 - rate * decay;
    } else {
      g += decay * p.x;
    }
    p.first = beta1 * p.first + (1 - beta1) * g;
    p.second = beta2 * p.second + (1 - beta2) * g * g;
    const double first = p.first / (1 - std::pow(beta1, t));
    const double second = p.second / (1 - std::pow(beta2, t));
    p.x -= rate * first / (std::sqrt(second) + epsilon);
  };
}

}  // namespace

TEST_CASE("SGD, with momentum, Nesterov and weight decay, follows torch.optim.SGD") {
  for (const double decay : {0.0, 0.01}) {
    CAPTURE(decay);
    CHECK(largest_difference({.learning_rate = 0.1, .weight_decay = decay},
                             sgd_reference(0.1, 0, false, decay)) < 1e-5);
    for (const bool nesterov : {false, true}) {
      CAPTURE(nesterov);
      CHECK(
          largest_difference(
              {.learning_rate = 0.05, .momentum = 0.9, .nesterov = nesterov, .weight_decay = decay},
              sgd_reference(0.05, 0.9, nesterov, decay)) < 2e-5);
    }
  }
}

TEST_CASE("the next model is x − d, bit for bit, and faults where d does") {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr float kLargest = std::numeric_limits<float>::max();
  const std::vector<float> x = {1, -0.0F, 0, 3e-41F, kLargest, -2, 0.1F};
  const std::vector<std::vector<float>> gradients = {
      {0.3F, -0.0F, 0, -1e-41F, 1, 0.7F, 1e-9F},  // both are finite
      {1, 2, 3, 4, -kLargest, 6, 7},              // x − d overflows
      {1, 2, 3, 4, 5, kLargest, -kLargest},       // at a rate above 1, d does
      {1, 2, kInfinity, 4, 5, 6, 7},              // g is not finite
      {1, 2, std::numeric_limits<float>::quiet_NaN(), 4, 5, 6, 7}};
  for (const StepRuleOptions& options :
       {StepRuleOptions{.learning_rate = 0.3}, StepRuleOptions{.learning_rate = 0},
        StepRuleOptions{.learning_rate = 1.7}, StepRuleOptions{.momentum = 0.9},
        StepRuleOptions{.weight_decay = 0.01}, StepRuleOptions{.clip_norm = 1},
        StepRuleOptions{.rule = "quasi-global", .momentum = 0.9}}) {
    CAPTURE(options.learning_rate);
    for (const auto& gradient : gradients) {
      for (const bool over_gradient : {false, true}) {
        const auto rule = make_step_rule(options);
        const auto again = make_step_rule(options);
        rule->resize(one_tensor(x.size()));
        again->resize(one_tensor(x.size()));
        std::vector<float> d(x.size());
        const Status one = rule->direction(0, x, gradient, d);
        std::vector<float> next = gradient;
        const std::vector<float> kept = gradient;
        const Status other = again->next_model(0, x, over_gradient ? next : kept, next, host_ops());
        CHECK(other.ok() == one.ok());
        CHECK(other.message() == one.message());
        if (one.ok()) {
          host_ops().subtract(x, d, d);
          for (std::size_t i = 0; i < x.size(); ++i) {
            CHECK(std::bit_cast<std::uint32_t>(next[i]) == std::bit_cast<std::uint32_t>(d[i]));
          }
        }
      }
    }
  }
}

TEST_CASE("a direction that is not written has the bits of the one that is, round after round") {
  constexpr std::size_t kElements = 10'000;  // more than a piece
  const StepRuleOptions rules[] = {
      {.learning_rate = 0.3},
      {.learning_rate = 3},
      {.learning_rate = 0.3, .weight_decay = 0.1},
      {.learning_rate = 0.3, .clip_norm = 1},
      {.learning_rate = 0.3, .momentum = 0.9},
      {.learning_rate = 3, .momentum = 0.9},
      {.learning_rate = 0.3, .momentum = 0.9, .weight_decay = 0.1, .clip_norm = 1},
      {.learning_rate = 0.3, .momentum = 0.9, .nesterov = true},
      {.rule = "adam", .learning_rate = 0.01},
      {.rule = "quasi-global", .learning_rate = 0.3, .momentum = 0.9},
  };
  for (const StepRuleOptions& options : rules) {
    CAPTURE(options.rule);
    CAPTURE(options.learning_rate);
    CAPTURE(options.momentum);
    const auto written = make_step_rule(options);
    const auto read = make_step_rule(options);
    written->resize(one_tensor(kElements));
    read->resize(one_tensor(kElements));
    const std::vector<float> x = waves(kElements, 0);
    std::vector<float> d(kElements);
    std::vector<float> room(kElements);
    for (Round round = 0; round < 3; ++round) {
      std::vector<float> gradient = waves(kElements, 1 + round);
      REQUIRE(written->direction(round, x, gradient, d).ok());
      const auto direction = read->direction_in(round, x, gradient, room);
      REQUIRE(direction.ok());
      REQUIRE(direction->values.size() == kElements);
      std::size_t different = 0;
      for (std::size_t i = 0; i < kElements; ++i) {
        const float value = direction->scale * direction->values[i];
        different += std::bit_cast<std::uint32_t>(value) != std::bit_cast<std::uint32_t>(d[i]);
      }
      CHECK(different == 0);
    }
    // What overflows is refused, also where only the factor makes it so.
    for (const float bad : {std::numeric_limits<float>::infinity(), 3e38F}) {
      CAPTURE(bad);
      std::vector<float> gradient(kElements, 1);
      gradient[kElements - 1] = bad;
      const auto fresh = make_step_rule(options);
      fresh->resize(one_tensor(kElements));
      const auto other = make_step_rule(options);
      other->resize(one_tensor(kElements));
      const Status refused = fresh->direction(0, x, gradient, d);
      const auto direction = other->direction_in(0, x, gradient, room);
      CHECK(direction.ok() == refused.ok());
      CHECK(direction.status().fault() == refused.fault());
    }
  }
}

TEST_CASE("Adam and AdamW follow torch.optim.Adam and torch.optim.AdamW") {
  for (const double decay : {0.0, 0.1}) {
    for (const bool decoupled : {false, true}) {
      CAPTURE(decay);
      CAPTURE(decoupled);
      CHECK(
          largest_difference(
              {.rule = decoupled ? "adamw" : "adam", .learning_rate = 0.01, .weight_decay = decay},
              adam_reference(0.01, 0.9, 0.999, 1e-8, decay, decoupled)) < 1e-4);
      CHECK(largest_difference({.rule = decoupled ? "adamw" : "adam",
                                .learning_rate = 0.01,
                                .weight_decay = decay,
                                .beta1 = 0.8,
                                .beta2 = 0.95,
                                .epsilon = 1e-3},
                               adam_reference(0.01, 0.8, 0.95, 1e-3, decay, decoupled)) < 1e-4);
    }
  }
}

TEST_CASE("Adam does not move a parameter whose gradient is always zero") {
  const auto rule = make_step_rule({.rule = "adam"});
  rule->resize(one_tensor(2));
  const std::vector<float> x = {1, 1};
  const std::vector<float> g = {0, 1};
  std::vector<float> d(2);
  REQUIRE(rule->direction(0, x, g, d).ok());
  CHECK(d[0] == 0);
  CHECK(d[1] == doctest::Approx(0.1));
}

TEST_CASE("the schedule and a new learning rate scale the direction") {
  StepRuleOptions options{.learning_rate = 1};
  options.schedule = parse_schedule("step:10:0.5", 0);
  const auto rule = make_step_rule(options);
  rule->resize(one_tensor(1));
  const std::vector<float> x = {0};
  const std::vector<float> g = {1};
  std::vector<float> d(1);
  REQUIRE(rule->direction(0, x, g, d).ok());
  CHECK(d[0] == 1);
  REQUIRE(rule->direction(10, x, g, d).ok());
  CHECK(d[0] == 0.5F);
  rule->set_learning_rate(0.25);
  REQUIRE(rule->direction(25, x, g, d).ok());
  CHECK(d[0] == 0.0625F);
}

TEST_CASE("a rule that was saved and loaded continues to the bit") {
  for (const StepRuleOptions& options :
       {StepRuleOptions{}, StepRuleOptions{.momentum = 0.9, .nesterov = true},
        StepRuleOptions{.rule = "adam"}, StepRuleOptions{.rule = "adamw", .weight_decay = 0.1},
        StepRuleOptions{.rule = "lars", .momentum = 0.9}, StepRuleOptions{.rule = "lamb"},
        StepRuleOptions{.rule = "quasi-global", .momentum = 0.9}}) {
    CAPTURE(options.rule);
    const auto rule = make_step_rule(options);
    const auto copy = make_step_rule(options);
    rule->resize(one_tensor(3));
    copy->resize(one_tensor(3));
    const std::vector<float> x = {1, -2, 3};
    const std::vector<float> g = {0.5, 0.25, -1};
    std::vector<float> d(3);
    std::vector<float> e(3);
    for (Round t = 0; t < 5; ++t) {
      REQUIRE(rule->direction(t, x, g, d).ok());
    }
    ByteBuffer saved;
    rule->save(saved);
    ByteReader in(saved.bytes());
    REQUIRE(copy->load(in).ok());
    CHECK(in.finished());
    REQUIRE(rule->direction(5, x, g, d).ok());
    REQUIRE(copy->direction(5, x, g, e).ok());
    CHECK(d == e);
  }
}

TEST_CASE("a damaged or foreign state of a rule is refused") {
  const auto adam = make_step_rule({.rule = "adam"});
  adam->resize(one_tensor(3));
  ByteBuffer saved;
  adam->save(saved);
  for (std::size_t size = 0; size < saved.bytes().size(); ++size) {
    CAPTURE(size);
    ByteReader in(saved.bytes().first(size));
    CHECK(adam->load(in).fault() == Fault::malformed);
  }
  const auto sgd = make_step_rule({});
  sgd->resize(one_tensor(3));
  ByteReader foreign(saved.bytes());
  CHECK(sgd->load(foreign).message() == "checkpoint of step rule 'adam' where 'sgd' is used");
  adam->resize(one_tensor(4));
  ByteReader other_dimension(saved.bytes());
  CHECK(adam->load(other_dimension).message() ==
        "checkpoint has 3 elements of first moment where 4 are due");
}

TEST_CASE("a setting outside its range is refused by name") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const auto refused_field = [](const StepRuleOptions& options) {
    try {
      make_step_rule(options);
    } catch (const Error& error) {
      const std::string what = error.what();
      return what.substr(0, what.find(':'));
    }
    return std::string("nothing");
  };
  CHECK(refused_field({.rule = "newton"}) == "step_rule");
  CHECK(refused_field({.learning_rate = nan}) == "lr");
  CHECK(refused_field({.learning_rate = -1}) == "lr");
  CHECK(refused_field({.momentum = 1}) == "momentum");
  CHECK(refused_field({.momentum = nan}) == "momentum");
  CHECK(refused_field({.rule = "adam", .momentum = 0.9}) == "momentum");
  CHECK(refused_field({.nesterov = true}) == "nesterov");
  CHECK(refused_field({.weight_decay = -0.1}) == "weight_decay");
  CHECK(refused_field({.beta1 = 1}) == "beta1");
  CHECK(refused_field({.beta2 = -0.1}) == "beta2");
  CHECK(refused_field({.epsilon = 0}) == "epsilon");
  CHECK(refused_field({.rule = "lars", .momentum = 0.9, .nesterov = true}) == "nesterov");
  CHECK(refused_field({.rule = "lamb", .momentum = 0.9}) == "momentum");
  CHECK(refused_field({.rule = "lars", .trust_coefficient = 0}) == "trust_coefficient");
  CHECK(refused_field({.clip_norm = 0}) == "clip_norm");
  CHECK(refused_field({.clip_norm = nan}) == "clip_norm");
  CHECK(refused_field({}) == "nothing");
}

TEST_CASE("a setting that float32 cannot hold as it is meant is refused by name") {
  const auto refused = [](const StepRuleOptions& options, const std::string& field) {
    CAPTURE(field);
    try {
      make_step_rule(options);
      FAIL_CHECK("it is taken");
    } catch (const Error& error) {
      CHECK(std::string(error.what()).starts_with(field + ": "));
      CHECK(std::string(error.what()).find("float32") != std::string::npos);
    }
  };
  constexpr double kBeyond = 3.5e38;
  for (const std::string& rule : names_of(step_rules())) {
    CAPTURE(rule);
    refused({.rule = rule, .learning_rate = kBeyond}, "lr");
    refused({.rule = rule, .weight_decay = kBeyond}, "weight_decay");
  }
  refused({.momentum = 1 - 1e-12}, "momentum");
  refused({.rule = "lars", .momentum = 1 - 1e-12}, "momentum");
  refused({.rule = "adam", .epsilon = kBeyond}, "epsilon");
  refused({.rule = "adam", .epsilon = 1e-46}, "epsilon");
  const double largest = std::numeric_limits<float>::max();
  CHECK_NOTHROW(make_step_rule({.learning_rate = largest, .weight_decay = largest}));
  CHECK_NOTHROW(make_step_rule({.rule = "adam", .epsilon = 1e-45}));
}

TEST_CASE("the facts of a step rule are those of the rule that is made") {
  for (const StepRuleInfo& info : step_rules()) {
    CAPTURE(info.name);
    const std::string name(info.name);
    const auto rule = make_step_rule({.rule = name, .learning_rate = info.learning_rate});
    CHECK(rule->name() == info.name);
    CHECK(rule->separable() == info.separable);
    CHECK(rule->by_element() == info.by_element);
    CHECK((rule->separable() || !rule->by_element()));
    CHECK_NOTHROW(make_step_rule({.rule = name, .learning_rate = info.outer_learning_rate}));
    const StepRuleOptions with_momentum{.rule = name, .momentum = 0.9};
    if (info.has("momentum")) {
      CHECK_NOTHROW(make_step_rule(with_momentum));
    } else {
      CHECK_THROWS_AS(make_step_rule(with_momentum), Error);
    }
  }
}

}  // namespace sotto::test::step_rule_test
