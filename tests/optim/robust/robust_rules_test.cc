// The mathematics of the rules against lying neighbours: answers by hand, and what liars cannot do.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/base/error.h>
#include <sotto/base/philox.h>
#include <sotto/optim/robust/aggregation.h>
#include <sotto/optim/robust/clipped.h>

namespace sotto::test::robust_rules_test {

namespace {

using Model = std::vector<float>;

struct Outcome {
  Model next;
  std::size_t idle = 0;
};

/// What a node at `own`, after the step `step`, makes of `models`, each of weight `weight`.
Outcome take_in(std::string_view rule, const Model& own, std::vector<Model> models, float weight,
                const Model& step = {}, const Ops& ops = host_ops()) {
  const auto made = make_aggregation(rule, models.size(), own.size(), ops);
  const Model still(own.size(), 0.0F);
  std::vector<ReceivedModel> received;
  for (Model& model : models) {
    received.push_back({model, weight});
  }
  Outcome outcome{.next = Model(own.size())};
  outcome.idle = made->aggregate(
      {.own = own, .step = step.empty() ? still : step, .received = received}, outcome.next);
  return outcome;
}

Model random_model(RandomStream& stream, std::size_t size, double scale, double centre = 0) {
  Model model(size);
  for (float& value : model) {
    value = static_cast<float>(centre + scale * stream.normal());
  }
  return model;
}

double distance(const Model& a, const Model& b) {
  double squares = 0;
  for (std::size_t k = 0; k < a.size(); ++k) {
    squares += (double{a[k]} - double{b[k]}) * (double{a[k]} - double{b[k]});
  }
  return std::sqrt(squares);
}

/// A liar's model: anything from a near miss to the end of float32's range.
Model lie(RandomStream& stream, std::size_t size) {
  const double scale = std::pow(10.0, 38 * stream.uniform() - 1);
  Model model(size);
  for (float& value : model) {
    value = static_cast<float>(std::clamp(scale * stream.normal(), -3e38, 3e38));
  }
  return model;
}

constexpr std::uint64_t kSeed = 11;

}  // namespace

TEST_CASE("the rules give the answers found by hand") {
  const std::vector<Model> three = {{3, 4}, {0, 2}, {100, 0}};
  const Model origin = {0, 0};
  const auto next = [&](std::string_view rule) { return take_in(rule, origin, three, 0.25F).next; };
  // ‖Δ‖ = 5, 2, 100; clipped to 2: (1.2, 1.6), (0, 2), (2, 0).
  CHECK(next("clipped:2")[0] == doctest::Approx(0.8));
  CHECK(next("clipped:2")[1] == doctest::Approx(0.9));
  // τ = 5: (3, 4), (0, 2), (5, 0).
  CHECK(next("clipped:second-largest")[0] == doctest::Approx(2));
  CHECK(next("clipped:second-largest")[1] == doctest::Approx(1.5));
  CHECK(next("mean") == Model{25.75, 1.5});
  // 0 0 3 100 and 0 0 2 4
  CHECK(next("median") == Model{1.5, 1});
  CHECK(next("trimmed-mean:1") == Model{1.5, 1});
  CHECK(next("trimmed-mean:9") == next("median"));
  CHECK(next("trimmed-mean:0") == Model{25.75, 1.5});
  // The nearest of each: origin 4, (3, 4) 13, (0, 2) 4, (100, 0) far; the own model wins the tie.
  CHECK(next("krum:1") == origin);
  CHECK(next("multi-krum:1")[0] == doctest::Approx(1));
  CHECK(next("multi-krum:1")[1] == doctest::Approx(2));
}

TEST_CASE("the geometric median of three points on a line is the middle one") {
  const Model next = take_in("geometric-median:200", {0, 0}, {{4, 4}, {1000, 1000}}, 0.3F).next;
  CHECK(next[0] == doctest::Approx(4).epsilon(0.01));
  CHECK(next[1] == doctest::Approx(4).epsilon(0.01));
}

TEST_CASE("clipped:auto, step by step") {
  const Model own = {0, 0, 0};
  const Model step = {1, 0, 0};
  // The first brakes at distance 2, the second at 3; the third pushes on; the fourth is far.
  const std::vector<Model> four = {{-2, 0, 0}, {0, 3, 0}, {2, 2, 0}, {-4.5, 0, 0}};
  const Outcome near = take_in("clipped:auto", own, four, 0.2F, step);
  CHECK(near.idle == 2);
  CHECK(near.next[0] == doctest::Approx(-0.4));
  CHECK(near.next[1] == doctest::Approx(0.4));  // cut from 3 to 2
  // With K = 1: τ = 1² / 2.
  const Outcome careful = take_in("clipped:auto:1", own, four, 0.2F, step);
  CHECK(careful.next[0] == doctest::Approx(-0.1));
  CHECK(careful.next[1] == doctest::Approx(0.1));
  // No own step, no influence; nobody left, none either.
  CHECK(take_in("clipped:auto", own, four, 0.2F).next == own);
  const Outcome alone = take_in("clipped:auto", own, {{1, 1, 1}, {2, 0, 0}}, 0.2F, step);
  CHECK(alone.next == own);
  CHECK(alone.idle == 2);
  CHECK(take_in("clipped:auto", own, {}, 0.2F, step).next == own);
}

TEST_CASE("no clipping: neighbours that agree, or a distance of 0, divide by nothing") {
  for (const std::string rule : {"clipped:1", "clipped:second-largest", "clipped:auto"}) {
    CAPTURE(rule);
    const Model own = {1, -2, 3};
    CHECK(take_in(rule, own, {own, own}, 0.3F, {0.1F, 0, 0}).next == own);
    CHECK(take_in(rule, {}, {{}, {}}, 0.3F).next.empty());
  }
}

TEST_CASE("clipping: whatever is sent, a model moves by at most tau times the neighbours' weight") {
  RandomStream stream({.seed = kSeed});
  CAPTURE(kSeed);
  constexpr std::size_t kSize = 257;
  for (int trial = 0; trial < 200; ++trial) {
    CAPTURE(trial);
    const Model own = random_model(stream, kSize, 1);
    const Model step = random_model(stream, kSize, 0.01);
    std::vector<Model> models;
    for (int j = 0; j < 5; ++j) {
      models.push_back(j < 2 ? random_model(stream, kSize, 0.1) : lie(stream, kSize));
    }
    const double length = distance(step, Model(kSize));
    CHECK(distance(take_in("clipped:0.5", own, models, 0.15F, step).next, own) <=
          0.5 * 0.75 * 1.0001);
    CHECK(distance(take_in("clipped:auto", own, models, 0.15F, step).next, own) <=
          10 * length * 0.75 * 1.0001);
    CHECK(distance(take_in("clipped:auto:0.5", own, models, 0.15F, step).next, own) <=
          0.5 * length * 0.75 * 1.0001);
  }
}

TEST_CASE("clipping contracts honest models towards each other, and is gossip where all are near") {
  RandomStream stream({.seed = kSeed, .round = 1});
  CAPTURE(kSeed);
  constexpr std::size_t kSize = 100;
  constexpr std::size_t kNodes = 6;
  std::vector<Model> x;
  for (std::size_t i = 0; i < kNodes; ++i) {
    x.push_back(random_model(stream, kSize, 1));
  }
  const auto spread = [&](const std::vector<Model>& models) {
    double sum = 0;
    for (const Model& a : models) {
      for (const Model& b : models) {
        sum += distance(a, b) * distance(a, b);
      }
    }
    return sum;
  };
  for (const std::string rule : {"clipped:1000", "clipped:1", "mean"}) {
    CAPTURE(rule);
    std::vector<Model> next;
    for (std::size_t i = 0; i < kNodes; ++i) {
      auto others = x;
      others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
      next.push_back(take_in(rule, x[i], others, 1.0F / kNodes).next);
    }
    if (rule != "clipped:1") {
      CHECK(spread(next) < 1e-9 * spread(x));  // complete graph: the mean, in one round
    } else {
      CHECK(spread(next) < spread(x));
    }
  }
}

TEST_CASE("b liars among more than 2 b models move no coordinate out of the honest range") {
  RandomStream stream({.seed = kSeed, .round = 2});
  CAPTURE(kSeed);
  constexpr std::size_t kSize = 64;
  for (int trial = 0; trial < 100; ++trial) {
    CAPTURE(trial);
    std::vector<Model> honest;
    for (int i = 0; i < 3; ++i) {
      honest.push_back(random_model(stream, kSize, 1, 5));
    }
    const std::vector<Model> models = {honest[1], lie(stream, kSize), honest[2],
                                       lie(stream, kSize)};
    for (const std::string rule : {"median", "trimmed-mean:2"}) {
      CAPTURE(rule);
      const Model next = take_in(rule, honest[0], models, 0.2F).next;
      for (std::size_t k = 0; k < kSize; ++k) {
        const auto [low, high] = std::minmax({honest[0][k], honest[1][k], honest[2][k]});
        CHECK(next[k] >= low);
        CHECK(next[k] <= high);
      }
    }
  }
}

TEST_CASE("a minority of liars leaves the geometric median and Krum near the honest models") {
  RandomStream stream({.seed = kSeed, .round = 3});
  CAPTURE(kSeed);
  constexpr std::size_t kSize = 64;
  for (int trial = 0; trial < 100; ++trial) {
    CAPTURE(trial);
    std::vector<Model> honest;
    for (int i = 0; i < 5; ++i) {
      honest.push_back(random_model(stream, kSize, 1));
    }
    std::vector<Model> models(honest.begin() + 1, honest.end());
    models.push_back(lie(stream, kSize));
    double radius = 0;
    for (const Model& a : honest) {
      for (const Model& b : honest) {
        radius = std::max(radius, distance(a, b));
      }
    }
    // 2 (n − b) / (n − 2 b) × the radius, the median's bound (Minsker 2015), here 2 × 5 / 4.
    CHECK(distance(take_in("geometric-median:64", honest[0], models, 0.1F).next, honest[0]) <=
          2.5 * radius);
    const Model chosen = take_in("krum:1", honest[0], models, 0.1F).next;
    CHECK(distance(chosen, honest[0]) <= 2 * radius);  // a lie at worst as central as they
    CHECK(distance(take_in("multi-krum:1", honest[0], models, 0.1F).next, honest[0]) <= radius);
  }
}

TEST_CASE("every rule gives the same bits with the reference kernels and the host's") {
  RandomStream stream({.seed = kSeed, .round = 4});
  constexpr std::size_t kSize = 5001;
  const Model own = random_model(stream, kSize, 1);
  const Model step = random_model(stream, kSize, 0.5);
  std::vector<Model> models;
  for (int j = 0; j < 4; ++j) {
    models.push_back(random_model(stream, kSize, 1));
  }
  for (const std::string rule :
       {"clipped:auto", "clipped:20", "clipped:second-largest", "trimmed-mean:1", "median",
        "geometric-median", "krum:1", "multi-krum:1", "mean"}) {
    CAPTURE(rule);
    CHECK(take_in(rule, own, models, 0.2F, step, reference_ops()).next ==
          take_in(rule, own, models, 0.2F, step, host_ops()).next);
    CHECK(make_aggregation(rule, 4, kSize, host_ops())->spec() == rule);
  }
}

TEST_CASE("what is no rule is refused with the rules there are") {
  for (const std::string rule :
       {"", "clip", "clipped:", "clipped:0", "clipped:-1", "clipped:nan", "clipped:inf",
        "clipped:auto:", "clipped:auto:0", "clipped:1x", "trimmed-mean", "trimmed-mean:-1",
        "trimmed-mean:1.5", "median:1", "krum", "multi-krum:", "geometric-median:0",
        "geometric-median:", "mean:1"}) {
    CAPTURE(rule);
    try {
      (void)make_aggregation(rule, 3, 4, host_ops());
      FAIL("it was taken");
    } catch (const Error& error) {
      const std::string why = error.what();
      CHECK(why.find("rule: '" + rule + "' is refused") == 0);
      CHECK(why.find("clipped:auto[:K]") != std::string::npos);
    }
  }
}

}  // namespace sotto::test::robust_rules_test
