// Step rules by tensor: each tensor steps as it would with its rule alone.
#include <sotto/optim/step_rules/by_tensor.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/base/bytes.h>
#include <sotto/base/error.h>
#include <sotto/base/philox.h>
#include <sotto/kernels/norm.h>

#include "optim/noise.h"

namespace sotto::test::by_tensor_test {

namespace {

ParameterLayout model() {
  ParameterLayout layout;
  append_block(layout, "embed", {6, 4});
  append_block(layout, "h0.weight", {5, 4});
  append_block(layout, "h0.bias", {5});
  append_block(layout, "h1.weight", {3, 5});
  append_block(layout, "h1.bias", {3});
  append_block(layout, "head.weight", {2, 3});
  append_block(layout, "head.bias", {2});
  return layout;
}

ParameterLayout alone(const std::vector<std::string>& names) {
  ParameterLayout layout;
  for (const ParameterBlock& block : model()) {
    if (std::ranges::find(names, block.name) != names.end()) {
      append_block(layout, block.name, block.shape);
    }
  }
  return layout;
}

/// The elements of some tensors, one behind the other.
std::vector<float> picked(const ParameterLayout& layout, const std::vector<float>& whole) {
  std::vector<float> values;
  for (const ParameterBlock& block : model()) {
    if (std::ranges::find(layout, block.name, &ParameterBlock::name) != layout.end()) {
      const auto part = block.of(std::span(whole));
      values.insert(values.end(), part.begin(), part.end());
    }
  }
  return values;
}

/// Whether `rule` steps the tensors of a layout as `own` does alone.
bool steps_alike(const StepRuleOptions& rule, const StepRuleOptions& own,
                 const std::vector<std::string>& names) {
  const ParameterLayout part = alone(names);
  const auto both = make_step_rule(rule);
  const auto one = make_step_rule(own);
  both->resize(model());
  one->resize(part);
  const std::size_t d = dimension_of(model());
  std::vector<float> x = gaussian(3, d);
  std::vector<float> direction(d);
  std::vector<float> own_direction(dimension_of(part));
  for (Round t = 0; t < 6; ++t) {
    const auto g = gaussian(100 + t, d);
    REQUIRE(both->direction(t, x, g, direction).ok());
    REQUIRE(one->direction(t, picked(part, x), picked(part, g), own_direction).ok());
    if (picked(part, direction) != own_direction) {
      return false;
    }
    host_ops().axpy(-1, direction, x);
  }
  return true;
}

std::string error_of(const std::string& spec) {
  try {
    make_step_rule({.rule = spec})->resize(model());
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("each tensor steps as with its rule alone") {
  StepRuleOptions rule{.rule = "sgd; head.*=adamw:lr=0.003,beta2=0.9; 1d=quasi-global",
                       .learning_rate = 0.05,
                       .momentum = 0.7,
                       .nesterov = true,
                       .weight_decay = 0.1,
                       .schedule = parse_schedule("step:2", 6)};
  StepRuleOptions front = rule;
  front.rule = "sgd";
  CHECK(steps_alike(rule, front, {"embed", "h0.weight", "h1.weight"}));
  StepRuleOptions head = rule;
  head.rule = "adamw";
  head.learning_rate = 0.003;
  head.momentum = 0;
  head.nesterov = false;
  head.beta2 = 0.9;
  CHECK(steps_alike(rule, head, {"head.weight", "head.bias"}));
  StepRuleOptions biases = rule;
  biases.rule = "quasi-global";
  biases.learning_rate = 0.1;
  biases.momentum = 0.9;
  biases.nesterov = false;
  CHECK(steps_alike(rule, biases, {"h0.bias", "h1.bias"}));
  biases.momentum = 0.8;
  CHECK_FALSE(steps_alike(rule, biases, {"h0.bias", "h1.bias"}));
}

TEST_CASE("tensors of a part step as in the whole model, to which selectors belong") {
  const std::vector<std::vector<std::size_t>> parts = {
      {1, 2, 3, 4}, {0, 5, 6}, {2}, {0, 1, 2, 3, 4, 5, 6}};
  for (const std::string spec :
       {"muon", "sgd; ends=adamw:lr=0.05; 1d=adam", "muon; h*=adamw; 1d=adamw", "sgd"}) {
    for (const auto& numbers : parts) {
      CAPTURE(spec);
      CAPTURE(numbers);
      const StepRuleOptions rule{.rule = spec, .learning_rate = 0.02};
      std::vector<std::string> names;
      for (const std::size_t number : numbers) {
        names.push_back(model()[number].name);
      }
      const ParameterLayout part = alone(names);
      const auto whole = make_step_rule(rule);
      const auto own = make_step_rule_of_part(rule, model(), numbers);
      whole->resize(model());
      own->resize(part);
      CHECK(own->name() == whole->name());
      const std::size_t d = dimension_of(model());
      const std::vector<float> x = gaussian(3, d);
      std::vector<float> direction(d);
      std::vector<float> own_direction(dimension_of(part));
      for (Round t = 0; t < 4; ++t) {
        const auto g = gaussian(100 + t, d);
        REQUIRE(whole->direction(t, x, g, direction).ok());
        REQUIRE(own->direction(t, picked(part, x), picked(part, g), own_direction).ok());
        CHECK(picked(part, direction) == own_direction);
      }
      ByteBuffer saved;
      own->save(saved);
      const auto resumed = make_step_rule_of_part(rule, model(), numbers);
      resumed->resize(part);
      ByteReader in(saved.bytes());
      REQUIRE(resumed->load(in).ok());
      CHECK(in.finished());
    }
  }
  const StepRuleOptions no_tensor{.rule = "muon; *=adamw"};
  const auto part = make_step_rule_of_part(no_tensor, model(), std::vector<std::size_t>{1});
  CHECK_THROWS_AS(part->resize(alone({"h0.weight"})), Error);
  const StepRuleOptions misspelt{.rule = "sgd; heads.*=adamw"};
  CHECK_THROWS_AS((void)make_step_rule_of_part(misspelt, model(), std::vector<std::size_t>{1}),
                  Error);
}

TEST_CASE("muon alone leaves ends and vectors to adamw") {
  const StepRuleOptions plain{.rule = "muon", .learning_rate = 0.02, .momentum = 0.95};
  StepRuleOptions adamw{.rule = "adamw", .learning_rate = 0.001};
  CHECK(steps_alike(plain, adamw, {"embed", "h0.bias", "h1.bias", "head.weight", "head.bias"}));
  StepRuleOptions written = plain;
  written.rule = "muon; ends=adamw; 1d=adamw";
  CHECK(make_step_rule(plain)->name() == "muon");
  CHECK(make_step_rule(written)->name() == written.rule);
  const auto one = make_step_rule(plain);
  const auto other = make_step_rule(written);
  one->resize(model());
  other->resize(model());
  const std::size_t d = dimension_of(model());
  std::vector<float> a(d);
  std::vector<float> b(d);
  REQUIRE(one->direction(0, gaussian(1, d), gaussian(2, d), a).ok());
  REQUIRE(other->direction(0, gaussian(1, d), gaussian(2, d), b).ok());
  CHECK(a == b);
}

TEST_CASE("parts give the direction of the whole, and clipping goes by the whole gradient") {
  const StepRuleOptions options{
      .rule = "muon; ends=sgd; 1d=adamw", .learning_rate = 0.02, .momentum = 0.9};
  const auto whole = make_step_rule(options);
  const auto parts = make_step_rule(options);
  whole->resize(model());
  parts->resize(model());
  REQUIRE(parts->separable());
  const ParameterLayout layout = model();
  const std::size_t d = dimension_of(layout);
  const auto x = gaussian(5, d);
  std::vector<float> expected(d);
  std::vector<float> direction(d);
  for (Round t = 0; t < 4; ++t) {
    const auto g = gaussian(50 + t, d);
    REQUIRE(whole->direction(t, x, g, expected).ok());
    parts->begin_parts(t);
    for (const auto& [from, to] : {std::pair{5, 7}, std::pair{2, 5}, std::pair{0, 2}}) {
      const std::size_t first = layout[static_cast<std::size_t>(from)].offset;
      const ParameterBlock& last = layout[static_cast<std::size_t>(to) - 1];
      const std::size_t size = last.offset + last.size - first;
      REQUIRE(parts
                  ->direction_part(first, std::span(x).subspan(first, size),
                                   std::span(g).subspan(first, size),
                                   std::span(direction).subspan(first, size))
                  .ok());
    }
    CHECK(direction == expected);
  }

  StepRuleOptions clipping{.rule = "sgd; 1d=sgd:lr=1", .learning_rate = 1, .clip_norm = 2};
  const auto clips = make_step_rule(clipping);
  clips->resize(layout);
  CHECK_FALSE(clips->separable());
  const auto g = gaussian(60, d);
  REQUIRE(clips->direction(0, x, g, direction).ok());
  CHECK(norm(direction, host_ops()) == doctest::Approx(2));
}

TEST_CASE("rules that go by elements take parts that cut tensors, and with others none do") {
  const auto made = [](const std::string& names, double clip_norm = INFINITY) {
    auto rule = make_step_rule(
        {.rule = names, .learning_rate = 0.1, .momentum = 0.9, .clip_norm = clip_norm});
    rule->resize(model());
    return rule;
  };
  CHECK_FALSE(made("muon; 1d=adam")->takes_any_part());
  CHECK_FALSE(made("sgd; 1d=adam", 1)->takes_any_part());
  const auto whole = made("sgd; 1d=adam");
  const auto parts = made("sgd; 1d=adam");
  CHECK(parts->takes_any_part());
  CHECK_FALSE(parts->by_element());  // they need the names of tensors
  const std::size_t d = dimension_of(model());
  const auto x = gaussian(5, d);
  std::vector<float> expected(d);
  std::vector<float> direction(d);
  for (Round t = 0; t < 4; ++t) {
    const auto g = gaussian(70 + t, d);
    REQUIRE(whole->direction(t, x, g, expected).ok());
    parts->begin_parts(t);
    for (std::size_t first = 0; first < d; first += 7) {
      const std::size_t size = std::min<std::size_t>(7, d - first);
      const auto part = [&](auto& of) { return std::span(of).subspan(first, size); };
      REQUIRE(parts->direction_part(first, part(x), part(g), part(direction)).ok());
    }
    CHECK(direction == expected);
  }
}

TEST_CASE("a rate that is changed changes the others' in proportion") {
  const auto rule = make_step_rule({.rule = "sgd; 1d=sgd:lr=0.5", .learning_rate = 2});
  ParameterLayout layout;
  append_block(layout, "w", {1, 1});
  append_block(layout, "b", {1});
  rule->resize(layout);
  std::vector<float> d(2);
  const auto directions = [&] {
    REQUIRE(rule->direction(0, std::vector<float>{0, 0}, std::vector<float>{1, 1}, d).ok());
    return d;
  };
  CHECK(directions() == std::vector<float>{2, 0.5});
  rule->set_learning_rate(1);
  CHECK(directions() == std::vector<float>{1, 0.25});
  rule->set_learning_rate(0);
  CHECK(directions() == std::vector<float>{0, 0});
  rule->set_learning_rate(4);
  CHECK(directions() == std::vector<float>{4, 1});
}

TEST_CASE("rules by tensor that were saved and loaded continue to the bit") {
  const StepRuleOptions options{.rule = "muon; embed=quasi-global; 1d=adam; head.*=adamw",
                                .learning_rate = 0.02,
                                .momentum = 0.9};
  const auto rule = make_step_rule(options);
  const auto copy = make_step_rule(options);
  CHECK(rule->follows_model());
  rule->resize(model());
  copy->resize(model());
  const std::size_t d = dimension_of(model());
  const auto x = gaussian(8, d);
  std::vector<float> first(d);
  std::vector<float> second(d);
  for (Round t = 0; t < 3; ++t) {
    REQUIRE(rule->direction(t, x, gaussian(80 + t, d), first).ok());
  }
  ByteBuffer saved;
  rule->save(saved);
  for (std::size_t size = 0; size < saved.bytes().size(); size += 11) {
    ByteReader in(saved.bytes().first(size));
    CHECK(copy->load(in).fault() == Fault::malformed);
  }
  ByteReader in(saved.bytes());
  REQUIRE(copy->load(in).ok());
  CHECK(in.finished());
  REQUIRE(rule->direction(3, x, gaussian(90, d), first).ok());
  REQUIRE(copy->direction(3, x, gaussian(90, d), second).ok());
  CHECK(first == second);
  const auto other = make_step_rule({.rule = "sgd; 1d=adam"});
  other->resize(model());
  ByteReader foreign(saved.bytes());
  CHECK(other->load(foreign).message().find("is used") != std::string::npos);
}

TEST_CASE("one text stands for equal specifications") {
  CHECK(parse_step_rule(" muon ;1d = adamw:lr=1e-3 , weight-decay=0").text() ==
        "muon; 1d=adamw:lr=0.001,weight-decay=0");
  CHECK(parse_step_rule("muon").text() == "muon");
  CHECK(parse_step_rule("sgd").text() == "sgd");
  CHECK(parse_step_rule("muon").names() == std::vector<std::string>{"muon", "adamw"});
  CHECK(parse_step_rule("muon").has("beta1"));
  CHECK_FALSE(parse_step_rule("sgd").has("beta1"));
}

TEST_CASE("what is no specification of step rules is refused in words") {
  CHECK(error_of("sgd; 1d=adamw").empty());
  CHECK(error_of("newton; 1d=adamw").find("step_rule: 'newton'") == 0);
  CHECK(error_of("sgd; 1d=newton").find("step_rule: 'newton'") == 0);
  CHECK(error_of("sgd; 1d").find("rules are written SELECTOR=SPEC, e.g. 1d=adamw") !=
        std::string::npos);
  CHECK(error_of("sgd; nothing.*=adamw").find("fits none of the tensors embed") !=
        std::string::npos);
  CHECK(error_of("sgd:lr=1; 1d=adamw").find("the rule in front") != std::string::npos);
  CHECK(error_of("sgd; 1d=adamw:momentum=0.9").find("KEY is one of lr, weight-decay, beta1") !=
        std::string::npos);
  CHECK(error_of("sgd; 1d=adamw:lr").find("KEY=VALUE") != std::string::npos);
  CHECK(error_of("sgd; 1d=adamw:").find("KEY=VALUE") != std::string::npos);
  CHECK(error_of("sgd; 1d=adamw:lr=fast").find("lr takes no such value") != std::string::npos);
  CHECK(error_of("sgd; 1d=adamw:lr=1,lr=2").find("lr is given twice") != std::string::npos);
  CHECK(error_of("sgd; 1d=adamw:lr=-1").find("lr: '-1' is refused") == 0);
  CHECK(error_of("sgd; 1d=lamb").find("it goes by the whole model") != std::string::npos);
  CHECK(error_of("lars; 1d=sgd").find("it goes by the whole model") != std::string::npos);
  CHECK(error_of("sgd; 1d=adam:bias-correction=sometimes").find("bias_correction: 'sometimes'") ==
        0);
}

}  // namespace sotto::test::by_tensor_test
