// Clipping and noise in front of an algorithm: what one unit can change, what the noise is, and
// that nothing but the noised gradient reaches the algorithm.
#include <sotto/optim/privacy/private_gradient.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/base/error.h>
#include <sotto/optim/privacy/clipped_sum.h>

#include "optim/cluster.h"

namespace sotto::test::private_gradient_test {

namespace {

PrivacyOptions whole_update(double clip_norm, double sigma) {
  PrivacyOptions options;
  options.clip_norm = clip_norm;
  options.noise_multiplier = sigma;
  options.test_seed = 5;
  return options;
}

std::vector<float> random_vector(RandomStream& stream, std::size_t dimension) {
  // Lengths from far below to far above the clip norm.
  const double scale = std::exp(6 * stream.uniform() - 3) / std::sqrt(dimension);
  std::vector<float> x(dimension);
  for (float& value : x) {
    value = static_cast<float>(scale * stream.normal());
  }
  return x;
}

double distance(std::span<const float> a, std::span<const float> b) {
  double squares = 0;
  for (std::size_t k = 0; k < a.size(); ++k) {
    squares += std::pow(static_cast<double>(a[k]) - static_cast<double>(b[k]), 2);
  }
  return std::sqrt(squares);
}

}  // namespace

TEST_CASE("one example more or less moves a clipped sum by at most the clip norm") {
  constexpr std::uint64_t kSeed = 31;
  constexpr std::size_t kDimension = 200;
  constexpr double kClip = 0.7;
  CAPTURE(kSeed);
  double largest = 0;
  for (Round trial = 0; trial < 200; ++trial) {
    RandomStream stream({.seed = kSeed, .round = trial});
    const std::size_t examples = 1 + stream.below(40);
    const std::size_t left_out = stream.below(examples);
    ClippedSum all(kDimension, kClip);
    ClippedSum without(kDimension, kClip);
    for (std::size_t k = 0; k < examples; ++k) {
      const auto g = random_vector(stream, kDimension);
      all.add(g);
      if (k != left_out) {
        without.add(g);
      }
    }
    std::vector<float> a(kDimension);
    std::vector<float> b(kDimension);
    all.divide(1, a);
    without.divide(1, b);
    largest = std::max(largest, distance(a, b));
  }
  CHECK(largest <= kClip * (1 + 0x1p-23 * 40));  // float32's share, see gaussian_mechanism.h
  CHECK(largest > kClip * (1 - 1e-5));           // and the bound is met
}

TEST_CASE("examples below the clip norm are summed as they are, and a bad one is not hidden") {
  ClippedSum sum(3, 10);
  sum.add(std::vector<float>{1, 2, 3});
  sum.add(std::vector<float>{-4, 0, 1});
  std::vector<float> mean(3);
  sum.divide(2, mean);
  CHECK(mean == std::vector<float>{-1.5F, 1, 2});
  sum.clear();
  sum.divide(2, mean);
  CHECK(mean == std::vector<float>(3));
  for (const float bad : {std::numeric_limits<float>::infinity(), std::nanf("")}) {
    sum.clear();
    sum.add(std::vector<float>{1, bad, 3});
    sum.divide(2, mean);
    CHECK_FALSE(std::isfinite(mean[1]));
  }
}

TEST_CASE("a whole update is clipped, and what one site can change is bounded") {
  constexpr std::uint64_t kSeed = 32;
  constexpr std::size_t kDimension = 300;
  CAPTURE(kSeed);
  // One step and one key give one noise, so that the difference is that of the sums.
  const GaussianMechanism mechanism(whole_update(0.5, 1), 0);
  const std::vector<float> nothing(kDimension);
  std::vector<float> noise(kDimension);
  mechanism.release(0, nothing, noise);
  double largest = 0;
  for (Round trial = 0; trial < 200; ++trial) {
    RandomStream stream({.seed = kSeed, .round = trial});
    auto g = random_vector(stream, kDimension);
    mechanism.release(0, g, g);
    largest = std::max(largest, distance(g, noise));
  }
  CHECK(largest <= 0.5 * (1 + 1e-5));
  CHECK(largest > 0.5 * (1 - 1e-5));
}

TEST_CASE("the noise has mean 0 and deviation sigma C / batch, and is new in each step") {
  constexpr std::size_t kDimension = 200'000;
  PrivacyOptions options = whole_update(2, 1.5);
  options.unit = PrivacyUnit::example;
  options.sampling_rate = 0.1;
  options.batch = 16;
  const GaussianMechanism mechanism(options, 3);
  const std::vector<float> gradient(kDimension, 0.25F);
  std::vector<float> first(kDimension);
  std::vector<float> second(kDimension);
  mechanism.release(0, gradient, first);
  mechanism.release(1, gradient, second);
  double mean = 0;
  double variance = 0;
  double common = 0;
  const double deviation = 1.5 * 2 / 16 * (1 + 0x1p-10);
  for (std::size_t k = 0; k < kDimension; ++k) {
    const double a = (static_cast<double>(first[k]) - 0.25) / deviation;
    const double b = (static_cast<double>(second[k]) - 0.25) / deviation;
    mean += a / kDimension;
    variance += a * a / kDimension;
    common += a * b / kDimension;
  }
  // Within 4.5 standard errors: by chance one of the three fails with 2 × 10^-5.
  const double error = 4.5 / std::sqrt(kDimension);
  CHECK(std::abs(mean) < error);
  CHECK(std::abs(variance - 1) < error * std::sqrt(2.0));
  CHECK(std::abs(common) < error);
}

TEST_CASE("without a test seed the noise differs from run to run and from node to node") {
  PrivacyOptions options = whole_update(1, 1);
  options.test_seed.reset();
  const std::vector<float> gradient(8, 1.0F);
  std::vector<float> a(8);
  std::vector<float> b(8);
  GaussianMechanism(options, 0).release(0, gradient, a);
  GaussianMechanism(options, 0).release(0, gradient, b);
  CHECK(a != b);
  options.test_seed = 9;
  GaussianMechanism(options, 0).release(0, gradient, a);
  GaussianMechanism(options, 1).release(0, gradient, b);
  CHECK(a != b);
  GaussianMechanism(options, 0).release(0, gradient, b);
  CHECK(a == b);
}

TEST_CASE("the low bits of what is released say nothing of the gradient") {
  // Values of either gradient come out on one grid: with noise added in floating point, each would
  // have a set of sums of its own.
  const PrivacyOptions options = whole_update(1, 0.001);
  const GaussianMechanism mechanism(options, 0);
  for (const float value : {0.0F, 0.1F, 1.0F / 3, 1e-6F}) {
    std::vector<float> released(1000, value / 40);
    mechanism.release(0, released, released);
    CHECK(std::all_of(released.begin(), released.end(), [](float x) {
      const double steps = static_cast<double>(x) * 0x1p28;
      return steps == std::nearbyint(steps);
    }));
  }
}

TEST_CASE("every algorithm sees the noised gradient and nothing else, with local steps too") {
  constexpr std::uint64_t kSeed = 33;
  CAPTURE(kSeed);
  for (const AlgorithmInfo& info : algorithms()) {
    for (const Round interval : {Round{1}, Round{3}}) {
      CAPTURE(info.name);
      CAPTURE(interval);
      ClusterOptions options;
      options.algorithm = info.name;
      options.nodes = 4;
      options.dimension = 96;
      options.communication_interval = interval;
      options.step.learning_rate = 0.02;
      options.seed = kSeed;
      const Quadratic problem(options.nodes, options.dimension, kSeed);
      const PrivacyOptions privacy = whole_update(0.5, 0.7);

      Cluster hidden(options, [&, rank = Rank{0}](auto inner) mutable {
        return std::make_unique<PrivateGradient>(std::move(inner),
                                                 std::make_shared<StepBudget>(privacy), rank++);
      });
      const Status status = hidden.driver.run(12, problem);
      CAPTURE(status.message());
      REQUIRE(status.ok());

      std::vector<GaussianMechanism> mechanisms;
      mechanisms.reserve(options.nodes);
      for (Rank rank = 0; rank < 4; ++rank) {
        mechanisms.emplace_back(privacy, rank);
      }
      Cluster plain(options);
      REQUIRE(plain.driver
                  .run(12,
                       [&](Rank rank, Round round, std::span<const float> x, std::span<float> g) {
                         problem(rank, round, x, g);
                         mechanisms[static_cast<std::size_t>(rank)].release(round, g, g);
                       })
                  .ok());
      for (std::size_t rank = 0; rank < options.nodes; ++rank) {
        CHECK(same_bits(hidden.x[rank], plain.x[rank]));
      }
    }
  }
}

TEST_CASE(
    "a node stops at the step that the accountant names, and nothing of the next one leaves") {
  PrivacyOptions privacy = whole_update(1, 4);
  privacy.epsilon = 3;
  const std::uint64_t allowed = steps_within(privacy.step(), 3, privacy.delta);
  REQUIRE(allowed > 3);
  ClusterOptions options;
  options.nodes = 1;
  options.topology = "complete";
  const auto budget = std::make_shared<StepBudget>(privacy);
  Cluster cluster(options, [&](auto inner) {
    return std::make_unique<PrivateGradient>(std::move(inner), budget, 0);
  });
  const Quadratic problem(1, options.dimension, 1);
  REQUIRE(cluster.driver.run(allowed, problem).ok());
  const auto before = cluster.x[0];
  const Status status = cluster.driver.run(1, problem);
  CHECK(status.fault() == Fault::budget);
  CHECK(status.message().find("another step would exceed 3") != std::string::npos);
  CHECK(cluster.x[0] == before);
  CHECK(budget->steps() == allowed);
  CHECK(cluster.driver.node(0).round() == allowed);
}

TEST_CASE("spent steps are saved, and never come back") {
  PrivacyOptions privacy = whole_update(1, 4);
  privacy.epsilon = 3;
  ClusterOptions options;
  options.nodes = 1;
  options.topology = "complete";
  auto budget = std::make_shared<StepBudget>(privacy);
  const auto hide = [&](auto inner) {
    return std::make_unique<PrivateGradient>(std::move(inner), budget, 0);
  };
  Cluster cluster(options, hide);
  REQUIRE(cluster.driver.run(3, Quadratic(1, options.dimension, 1)).ok());
  ByteBuffer saved;
  cluster.driver.node(0).save(saved);

  const auto loaded = [&](std::uint64_t known) {
    budget = std::make_shared<StepBudget>(privacy);
    budget->spend_at_least(known);
    Cluster again(options, hide);
    ByteReader in(saved.bytes());
    CHECK(again.driver.node(0).load(in).ok());
    CHECK(in.finished());
    return budget->steps();
  };
  CHECK(loaded(0) == 3);
  CHECK(loaded(5) == 5);

  privacy.noise_multiplier = 2;
  budget = std::make_shared<StepBudget>(privacy);
  Cluster other(options, hide);
  ByteReader in(saved.bytes());
  CHECK(other.driver.node(0).load(in).fault() == Fault::malformed);
}

TEST_CASE("a gradient that is not finite costs nothing and changes nothing") {
  ClusterOptions options;
  options.nodes = 1;
  options.topology = "complete";
  const auto budget = std::make_shared<StepBudget>(whole_update(1, 1));
  Cluster cluster(options, [&](auto inner) {
    return std::make_unique<PrivateGradient>(std::move(inner), budget, 0);
  });
  const auto before = cluster.x[0];
  const auto poisoned = [](Rank, Round, std::span<const float>, std::span<float> g) {
    std::fill(g.begin(), g.end(), 1.0F);
    g[7] = std::nanf("");
  };
  const Status status = cluster.driver.run(1, poisoned);
  CHECK(status.fault() == Fault::non_finite);
  CHECK(cluster.x[0] == before);
  CHECK(budget->steps() == 0);
}

}  // namespace sotto::test::private_gradient_test
