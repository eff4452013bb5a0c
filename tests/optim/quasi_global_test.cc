// Quasi-global momentum, alone and under algorithms that mix.
#include <sotto/optim/step_rules/quasi_global.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/base/error.h>

#include "optim/cluster.h"
#include "optim/uneven.h"

namespace sotto::test::quasi_global_test {

namespace {

constexpr std::size_t kNodes = 8;
constexpr std::size_t kDimension = 24;
constexpr double kMomentum = 0.9;

/// Another seed in each part of a test, printed where it fails.
std::uint64_t draw_seed(std::uint32_t number) {
  RandomStream stream({.seed = 2102'04761, .round = number, .purpose = Purpose::test});
  return stream.next_u64() >> 40U;
}

StepRuleOptions quasi_global(double rate, bool nesterov = false) {
  return {
      .rule = "quasi-global", .learning_rate = rate, .momentum = kMomentum, .nesterov = nesterov};
}

/// Gradients that do not depend on the model, so that the mean of all is known beforehand.
float gradient_at(std::uint64_t seed, Rank rank, Round round, std::size_t k) {
  RandomStream stream({.seed = seed, .rank = rank, .round = round, .purpose = Purpose::test});
  const double own = std::sin(static_cast<double>(k) + 2.0 * rank);
  double noise = 0;
  for (std::size_t skipped = 0; skipped <= k; ++skipped) {
    noise = stream.normal();
  }
  return static_cast<float>(own + 0.5 * noise);
}

/// x̄ ← x̄ − γ d̄, d̄ = μ m̄ + ḡ or Nesterov's form, m̄ ← μ m̄ + (1 − μ) d̄, in double precision.
struct MeanModel {
  std::vector<double> x;
  std::vector<double> m = std::vector<double>(x.size());

  void step(double rate, bool nesterov, const std::vector<double>& g) {
    for (std::size_t k = 0; k < x.size(); ++k) {
      const double heavy = kMomentum * m[k] + g[k];
      const double d = nesterov ? g[k] + kMomentum * heavy : heavy;
      x[k] -= rate * d;
      m[k] = kMomentum * m[k] + (1 - kMomentum) * d;
    }
  }
};

/// How far the mean model of a run is from that at most, in any round and coordinate.
double largest_difference(const ClusterOptions& options, Round rounds) {
  Cluster cluster(options);
  MeanModel mean{cluster.mean()};
  const auto gradient = [&](Rank rank, Round round, std::span<const float>, std::span<float> g) {
    for (std::size_t k = 0; k < g.size(); ++k) {
      g[k] = gradient_at(options.seed, rank, round, k);
    }
  };
  double largest = 0;
  for (Round t = 0; t < rounds; ++t) {
    const Status status = cluster.driver.run(1, gradient);
    CAPTURE(status.message());
    REQUIRE(status.ok());
    std::vector<double> g(options.dimension);
    for (std::size_t k = 0; k < g.size(); ++k) {
      for (std::size_t i = 0; i < options.nodes; ++i) {
        g[k] += static_cast<double>(gradient_at(options.seed, static_cast<Rank>(i), t, k)) /
                static_cast<double>(options.nodes);
      }
    }
    mean.step(options.step.learning_rate, options.step.nesterov, g);
    const auto x = cluster.mean();
    for (std::size_t k = 0; k < g.size(); ++k) {
      largest = std::fmax(largest, std::fabs(x[k] - mean.x[k]));
    }
  }
  return largest;
}

/// √(Σ_i ‖x_i − x̄‖² / n)
double spread(const Cluster& cluster) {
  const auto mean = cluster.mean();
  double sum = 0;
  for (const auto& model : cluster.x) {
    for (std::size_t k = 0; k < mean.size(); ++k) {
      sum += std::pow(static_cast<double>(model[k]) - mean[k], 2);
    }
  }
  return std::sqrt(sum / static_cast<double>(cluster.x.size()));
}

}  // namespace

TEST_CASE("quasi-global: the mean model follows d̄ = μ m̄ + ḡ, whatever graph and compressor") {
  struct Run {
    const char* algorithm;
    const char* compressor;
    const char* topology;
  };
  std::uint32_t number = 0;
  for (const Run& run :
       {Run{"dpsgd", "none", "ring"}, Run{"dpsgd", "none", "one-peer-exponential"},
        Run{"dpsgd", "none", "matching"}, Run{"choco", "sign", "ring"},
        Run{"choco", "topk:0.1", "ring"}, Run{"choco", "sign", "base:1"},
        Run{"deepsqueeze", "sign", "ring"}, Run{"powergossip", "lowrank:1", "ring"},
        Run{"moniqua", "grid:8:0.05", "ring"}, Run{"dcd", "none", "ring"}}) {
    for (const bool nesterov : {false, true}) {
      const std::uint64_t seed = draw_seed(number++);
      CAPTURE(run.algorithm);
      CAPTURE(run.compressor);
      CAPTURE(run.topology);
      CAPTURE(nesterov);
      CAPTURE(seed);
      CHECK(largest_difference({.algorithm = run.algorithm,
                                .compressor = run.compressor,
                                .topology = run.topology,
                                .dimension = kDimension,
                                .step = quasi_global(0.01, nesterov),
                                .seed = seed},
                               120) < 2e-5);
    }
  }
}

TEST_CASE("quasi-global: the mean model follows the same between exchanges, and with late ones") {
  std::uint32_t number = 100;
  for (const std::string algorithm : {"dpsgd", "choco", "deepsqueeze"}) {
    CAPTURE(algorithm);
    const std::uint64_t seed = draw_seed(number++);
    CAPTURE(seed);
    ClusterOptions options{.algorithm = algorithm,
                           .dimension = kDimension,
                           .step = quasi_global(0.01),
                           .communication_interval = 4,
                           .seed = seed};
    CHECK(largest_difference(options, 120) < 2e-5);
    options.communication_interval = 1;
    options.delayed_gradient = algorithm_info(algorithm).takes_delayed_gradients();
    CHECK(largest_difference(options, 120) < 2e-5);
  }
}

TEST_CASE("quasi-global: a constant gradient at one node ends in steps of γ g / (1 − μ)") {
  for (const bool nesterov : {false, true}) {
    CAPTURE(nesterov);
    Cluster cluster({.algorithm = "dpsgd",
                     .nodes = 1,
                     .dimension = 3,
                     .step = quasi_global(0.001, nesterov),
                     .initial_scale = 0});
    const auto constant = [](Rank, Round, std::span<const float>, std::span<float> g) {
      g[0] = 1;
      g[1] = -2;
      g[2] = 0;
    };
    // 1 − μ (2 − μ) = (1 − μ)² is left of the distance to it in each round.
    REQUIRE(cluster.driver.run(1500, constant).ok());
    const auto before = cluster.x[0];
    REQUIRE(cluster.driver.run(10, constant).ok());
    const double expected = 0.01 / (1 - kMomentum);
    CHECK(static_cast<double>(before[0] - cluster.x[0][0]) ==
          doctest::Approx(expected).epsilon(1e-3));
    CHECK(static_cast<double>(cluster.x[0][1] - before[1]) ==
          doctest::Approx(2 * expected).epsilon(1e-3));
    CHECK(cluster.x[0][2] == 0);
  }
}

TEST_CASE("quasi-global without a momentum is SGD, to the bit") {
  const std::uint64_t seed = draw_seed(200);
  CAPTURE(seed);
  ClusterOptions options{.algorithm = "choco",
                         .compressor = "sign",
                         .dimension = kDimension,
                         .step = {.learning_rate = 0.05, .weight_decay = 0.01},
                         .seed = seed};
  Cluster sgd(options);
  options.step.rule = "quasi-global";
  Cluster other(options);
  const Quadratic task(kNodes, kDimension, seed, 0.1);
  REQUIRE(sgd.driver.run(50, task).ok());
  REQUIRE(other.driver.run(50, task).ok());
  CHECK(sgd.x == other.x);
}

TEST_CASE("on unlike quadratics nodes stay nearer together than with momenta of their own") {
  for (std::uint32_t number = 300; number < 303; ++number) {
    const std::uint64_t seed = draw_seed(number);
    CAPTURE(seed);
    const Quadratic task(kNodes, kDimension, seed);
    const auto spread_with = [&](const StepRuleOptions& step) {
      Cluster cluster({.algorithm = "dpsgd", .dimension = kDimension, .step = step, .seed = seed});
      REQUIRE(cluster.driver.run(1500, task).ok());
      return spread(cluster);
    };
    const double own = spread_with({.learning_rate = 0.05, .momentum = kMomentum});
    const double none = spread_with({.learning_rate = 0.5});
    const double shared = spread_with(quasi_global(0.05));
    CAPTURE(own);
    CAPTURE(none);
    CAPTURE(shared);
    CHECK(shared < own / 3);
    CHECK(shared < none / 3);
  }
}

TEST_CASE("on quadratics of unlike curvature their mean ends nearer to the optimum, too") {
  for (std::uint32_t number = 310; number < 313; ++number) {
    const std::uint64_t seed = draw_seed(number);
    CAPTURE(seed);
    const Uneven task(kNodes, kDimension, seed);
    const auto excess_with = [&](const StepRuleOptions& step) {
      Cluster cluster({.algorithm = "dpsgd", .dimension = kDimension, .step = step, .seed = seed});
      REQUIRE(cluster.driver.run(1500, task).ok());
      return task.excess(cluster.mean());
    };
    const double own = excess_with({.learning_rate = 0.05, .momentum = kMomentum});
    const double shared = excess_with(quasi_global(0.05));
    CAPTURE(own);
    CAPTURE(shared);
    CHECK(shared < own / 4);
  }
}

TEST_CASE("quasi-global: rates that change or vanish leave the momentum in the gradient's unit") {
  QuasiGlobal rule(quasi_global(0.5), host_ops());
  rule.resize(one_tensor(1));
  std::vector<float> x = {1};
  std::vector<float> d(1);
  const std::vector<float> g = {2};
  double m = 0;
  double moved = 0;
  double rate = 0;
  for (const double next : {0.5, 0.25, 0.0, 1e-9, 0.125, 1.0}) {
    if (rate >= 1e-8) {
      m = kMomentum * m + (1 - kMomentum) * moved / rate;
    }
    rate = next;
    rule.set_learning_rate(rate);
    REQUIRE(rule.direction(0, x, g, d).ok());
    CHECK(static_cast<double>(rule.momentum()[0]) == doctest::Approx(m).epsilon(1e-5));
    CHECK(static_cast<double>(d[0]) == doctest::Approx(rate * (kMomentum * m + 2)).epsilon(1e-5));
    moved = static_cast<double>(d[0]) + 0.125;  // mixing adds the rest
    x[0] -= static_cast<float>(moved);
  }
}

TEST_CASE("quasi-global in parts and resumed has the bits of the whole") {
  constexpr std::size_t kLong = 3 * 4096 + 5;
  const std::uint64_t seed = draw_seed(400);
  CAPTURE(seed);
  RandomStream stream({.seed = seed, .purpose = Purpose::test});
  const StepRuleOptions options{.rule = "quasi-global",
                                .learning_rate = 0.05,
                                .momentum = kMomentum,
                                .nesterov = true,
                                .weight_decay = 0.01};
  QuasiGlobal whole(options, host_ops());
  auto parts = make_step_rule(options);
  whole.resize(one_tensor(kLong));
  parts->resize(one_tensor(kLong));
  std::vector<float> x(kLong, 1);
  std::vector<float> g(kLong);
  std::vector<float> d(kLong);
  std::vector<float> e(kLong);
  for (Round t = 0; t < 5; ++t) {
    for (float& value : g) {
      value = static_cast<float>(stream.normal());
    }
    REQUIRE(whole.direction(t, x, g, d).ok());
    parts->begin_parts(t);
    for (const auto& [first, count] : {std::pair<std::size_t, std::size_t>{9000, kLong - 9000},
                                       std::pair<std::size_t, std::size_t>{0, 9000}}) {
      REQUIRE(parts
                  ->direction_part(first, std::span(x).subspan(first, count),
                                   std::span(g).subspan(first, count),
                                   std::span(e).subspan(first, count))
                  .ok());
    }
    CHECK(same_bits(d, e));
    host_ops().subtract(x, d, x);
    if (t == 2) {
      ByteBuffer saved;
      parts->save(saved);
      parts = make_step_rule(options);
      parts->resize(one_tensor(kLong));
      ByteReader in(saved.bytes());
      REQUIRE(parts->load(in).ok());
      CHECK(in.finished());
    }
  }
}

TEST_CASE("quasi-global is refused where the mean model does not move by the nodes' steps alone") {
  for (const AlgorithmInfo& info : algorithms()) {
    CAPTURE(info.name);
    for (const bool outer : {false, true}) {
      CAPTURE(outer);
      if (outer && !info.step_rules.only.empty()) {
        continue;
      }
      ClusterOptions options{.algorithm = std::string(info.name), .dimension = kDimension};
      (outer ? options.outer_step.emplace() : options.step) = quasi_global(0.01);
      std::string refusal;
      try {
        std::vector<float> x(kDimension);
        AlgorithmSetup setup = node_setup(options, 0, x, cluster_topology(options));
        if (!outer) {
          setup.step_rule = make_step_rule(options.step);  // also where another is needed
        }
        make_algorithm(spec_of(options), std::move(setup));
      } catch (const Error& error) {
        refusal = error.what();
      }
      CHECK(refusal.empty() == info.takes_following_rules());
      if (!refusal.empty()) {
        CHECK(refusal.starts_with(outer ? "outer_step_rule: " : "step_rule: "));
        CHECK((!info.step_rules.only.empty() || refusal.find("dpsgd, dcd") != std::string::npos));
      }
    }
  }
}

}  // namespace sotto::test::quasi_global_test
