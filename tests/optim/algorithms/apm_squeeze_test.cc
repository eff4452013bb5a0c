// APMSqueeze and 1-bit Adam: what holds before the variance is frozen, and after.
#include <sotto/optim/algorithms/apm_squeeze.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/base/frame.h>

#include "optim/cluster.h"

namespace sotto::test::apm_squeeze_test {

namespace {

/// A gradient of every node, round and parameter that does not depend on x.
float gradient_at(Rank rank, Round round, std::size_t k) {
  RandomStream stream({.seed = 4,
                       .rank = rank,
                       .round = round,
                       .purpose = Purpose::test,
                       .bucket = static_cast<std::uint32_t>(k)});
  return static_cast<float>(0.5 * std::sin(static_cast<double>(k)) + stream.normal());
}

void noisy(Rank rank, Round round, std::span<const float> /*x*/, std::span<float> g) {
  for (std::size_t k = 0; k < g.size(); ++k) {
    g[k] = gradient_at(rank, round, k);
  }
}

bool all_equal(const std::vector<std::vector<float>>& models) {
  return std::all_of(models.begin(), models.end(),
                     [&](const auto& model) { return same_bits(model, models[0]); });
}

/// mean_i δ_i + δ̄: what was measured but not yet applied.
std::vector<double> held_back(const Cluster& cluster) {
  std::vector<double> held(cluster.x[0].size());
  const auto nodes = cluster.x.size();
  for (std::size_t i = 0; i < nodes; ++i) {
    const auto& node = cluster.node<ApmSqueeze>(i);
    for (std::size_t k = 0; k < held.size(); ++k) {
      held[k] += static_cast<double>(node.chunk_mean().error()[k]) / static_cast<double>(nodes);
    }
    const Chunk own = chunk_of(held.size(), static_cast<int>(nodes), static_cast<int>(i));
    for (std::size_t k = 0; k < own.size; ++k) {
      held[own.offset + k] += static_cast<double>(node.chunk_mean().chunk_error()[k]);
    }
  }
  return held;
}

/// Runs round by round and returns the number of rounds before the freeze; `rounds` if none came.
Round rounds_until_frozen(Cluster& cluster, Round rounds, const GradientFunction& gradient) {
  for (Round t = 0; t < rounds; ++t) {
    if (cluster.node<ApmSqueeze>(0).frozen()) {
      return t;
    }
    REQUIRE(cluster.driver.run(1, gradient).ok());
    for (std::size_t i = 1; i < cluster.x.size(); ++i) {
      REQUIRE(cluster.node<ApmSqueeze>(i).frozen() == cluster.node<ApmSqueeze>(0).frozen());
    }
  }
  return rounds;
}

}  // namespace

TEST_CASE("chunks cut a vector without gaps, at lengths that differ by 1 at most") {
  for (int nodes = 1; nodes <= 17; ++nodes) {
    for (const std::size_t dimension : {0U, 1U, 7U, 16U, 17U, 1009U}) {
      CAPTURE(nodes);
      CAPTURE(dimension);
      std::size_t end = 0;
      for (int k = 0; k < nodes; ++k) {
        const Chunk chunk = chunk_of(dimension, nodes, k);
        CHECK(chunk.offset == end);
        CHECK(chunk.size <= longest_chunk(dimension, nodes));
        CHECK(chunk.size + 1 >= longest_chunk(dimension, nodes));
        end += chunk.size;
      }
      CHECK(end == dimension);
    }
  }
}

TEST_CASE("before the freeze it is Adam on the mean gradient, summed in rank order, to the bit") {
  const StepRuleOptions step{.rule = "adam", .learning_rate = 0.01, .weight_decay = 0.1};
  for (const std::size_t nodes : {1U, 2U, 3U, 8U, 17U}) {
    for (const std::size_t dimension : {0U, 1U, 7U, 101U}) {
      CAPTURE(nodes);
      CAPTURE(dimension);
      Cluster cluster({.algorithm = "apmsqueeze",
                       .nodes = nodes,
                       .dimension = dimension,
                       .step = step,
                       .freeze_step = 1000});
      auto x = cluster.x[0];
      std::vector<float> d(dimension);
      const auto rule = make_step_rule(step);
      rule->resize(one_tensor(dimension));
      for (Round t = 0; t < 10; ++t) {
        std::vector<float> mean(dimension);
        for (std::size_t k = 0; k < dimension; ++k) {
          for (std::size_t i = 0; i < nodes; ++i) {
            mean[k] += gradient_at(static_cast<Rank>(i), t, k);
          }
          mean[k] *= 1.0F / static_cast<float>(nodes);
        }
        REQUIRE(rule->direction(t, x, mean, d).ok());
        for (std::size_t k = 0; k < dimension; ++k) {
          x[k] -= d[k];
        }
        REQUIRE(cluster.driver.run(1, noisy).ok());
        for (const auto& model : cluster.x) {
          REQUIRE(same_bits(model, x));
        }
      }
    }
  }
}

TEST_CASE("without compression it is Adam whose variance stands still from the freeze on") {
  constexpr std::size_t kNodes = 3;
  constexpr std::size_t kDimension = 37;
  constexpr int kFreeze = 20;
  constexpr double kDecay = 0.01;
  for (const auto correction :
       {BiasCorrection::always, BiasCorrection::warmup, BiasCorrection::never}) {
    CAPTURE(static_cast<int>(correction));
    // √v is 7 times smaller than √v̂ after 20 rounds, and steps as much longer.
    const double rate = correction == BiasCorrection::always ? 1e-3 : 1e-4;
    Cluster cluster({.algorithm = "onebit-adam",
                     .compressor = "none",
                     .nodes = kNodes,
                     .dimension = kDimension,
                     .step = {.rule = "adam",
                              .learning_rate = rate,
                              .weight_decay = kDecay,
                              .bias_correction = correction},
                     .freeze_step = kFreeze,
                     .initial_scale = 0});
    std::vector<double> x(kDimension);
    std::vector<double> m(kDimension);
    std::vector<double> v(kDimension);
    for (int t = 1; t <= 100; ++t) {
      const bool corrected = correction == BiasCorrection::always ||
                             (correction == BiasCorrection::warmup && t <= kFreeze);
      const double first = corrected ? 1 - std::pow(0.9, t) : 1;
      const double second = corrected ? 1 - std::pow(0.999, std::min(t, kFreeze)) : 1;
      for (std::size_t k = 0; k < kDimension; ++k) {
        double g = kDecay * x[k];
        for (std::size_t i = 0; i < kNodes; ++i) {
          g +=
              static_cast<double>(gradient_at(static_cast<Rank>(i), static_cast<Round>(t - 1), k)) /
              kNodes;
        }
        m[k] = 0.9 * m[k] + 0.1 * g;
        if (t <= kFreeze) {
          v[k] = 0.999 * v[k] + 0.001 * g * g;
        }
        x[k] -= rate * m[k] / first / (std::sqrt(v[k] / second) + 1e-8);
      }
      REQUIRE(cluster.driver.run(1, noisy).ok());
      CHECK(cluster.node<ApmSqueeze>(0).frozen() == (t >= kFreeze));
      double difference = 0;
      double size = 0;
      for (std::size_t k = 0; k < kDimension; ++k) {
        difference = std::fmax(difference, std::fabs(static_cast<double>(cluster.x[0][k]) - x[k]));
        size = std::fmax(size, std::fabs(x[k]));
      }
      REQUIRE(difference < 1e-6 * std::fmax(1, size));
    }
  }
}

TEST_CASE("all nodes stay equal to the bit, whatever their number and that of the parameters") {
  for (std::size_t nodes = 1; nodes <= 17; ++nodes) {
    for (const std::size_t dimension : {0U, 1U, 13U, 1009U}) {
      for (const std::string spec : {"sign", "topk:0.1", "quant:4"}) {
        CAPTURE(nodes);
        CAPTURE(dimension);
        CAPTURE(spec);
        Cluster cluster({.algorithm = "onebit-adam",
                         .compressor = spec,
                         .nodes = nodes,
                         .dimension = dimension,
                         .step = {.learning_rate = 0.01},
                         .freeze_step = 2,
                         .delivery = Delivery::late});
        for (int t = 0; t < 6; ++t) {
          const Status status = cluster.driver.run(1, Quadratic(nodes, dimension, 5, 0.1));
          CAPTURE(status.message());
          REQUIRE(status.ok());
          REQUIRE(all_equal(cluster.x));
        }
        const auto m = cluster.node<ApmSqueeze>(0).momentum();
        for (std::size_t i = 1; i < nodes; ++i) {
          CHECK(same_bits(cluster.node<ApmSqueeze>(i).momentum(), m));
        }
      }
    }
  }
}

TEST_CASE("nothing is lost: what was applied and what both passes hold back is what was measured") {
  constexpr std::size_t kNodes = 5;
  constexpr std::size_t kDimension = 33;
  for (const std::string spec : {"sign", "topk:0.1", "quant:2", "none"}) {
    CAPTURE(spec);
    Cluster cluster({.algorithm = "apmsqueeze",
                     .compressor = spec,
                     .nodes = kNodes,
                     .dimension = kDimension,
                     .step = {.learning_rate = 1e-3},
                     .freeze_step = 4});
    REQUIRE(cluster.driver.run(4, noisy).ok());
    const auto momentum = [&cluster] { return cluster.node<ApmSqueeze>(0).momentum(); };
    std::vector<double> applied(kDimension);
    std::vector<double> measured(kDimension);
    for (Round t = 4; t < 104; ++t) {
      for (std::size_t k = 0; k < kDimension; ++k) {
        measured[k] += 0.9 * static_cast<double>(momentum()[k]);
        for (std::size_t i = 0; i < kNodes; ++i) {
          measured[k] +=
              0.1 * static_cast<double>(gradient_at(static_cast<Rank>(i), t, k)) / kNodes;
        }
      }
      REQUIRE(cluster.driver.run(1, noisy).ok());
      const auto held = held_back(cluster);
      for (std::size_t k = 0; k < kDimension; ++k) {
        applied[k] += static_cast<double>(momentum()[k]);
        REQUIRE(std::fabs(applied[k] + held[k] - measured[k]) < 2e-5);
      }
    }
  }
}

TEST_CASE("parameters whose gradient is always zero stay put, without a mask") {
  const auto sparse = [](Rank rank, Round round, std::span<const float> x, std::span<float> g) {
    noisy(rank, round, x, g);
    for (std::size_t k = 0; k < g.size(); k += 3) {
      g[k] = 0;
    }
  };
  for (const std::string spec : {"sign", "topk:0.5", "quant:2"}) {
    CAPTURE(spec);
    Cluster cluster({.algorithm = "onebit-adam",
                     .compressor = spec,
                     .nodes = 4,
                     .dimension = 50,
                     .freeze_step = 10});
    const auto start = cluster.x[0];
    REQUIRE(cluster.driver.run(100, sparse).ok());
    for (std::size_t k = 0; k < 50; ++k) {
      CHECK((cluster.x[0][k] == start[k]) == (k % 3 == 0));
      CHECK((k % 3 != 0 || cluster.node<ApmSqueeze>(1).momentum()[k] == 0));
    }
  }
}

TEST_CASE("a mean of gradients, or a compensated momentum, that overflows is noticed") {
  for (const Round freeze : {Round{1}, Round{100}}) {
    CAPTURE(freeze);
    Cluster cluster({.algorithm = "apmsqueeze", .nodes = 3, .dimension = 5, .freeze_step = freeze});
    const auto huge = [](Rank, Round round, std::span<const float>, std::span<float> g) {
      std::fill(g.begin(), g.end(), round == 0 ? 1.0F : 3e38F);
    };
    REQUIRE(cluster.driver.run(1, huge).ok());
    const auto before = cluster.x;
    const Status status = cluster.driver.run(50, huge);
    CAPTURE(status.message());
    CHECK(status.fault() == Fault::non_finite);
    CHECK(status.message().find(freeze == 1 ? "node 0, round " : "the mean over all nodes") !=
          std::string::npos);
    CHECK((freeze == 1 || cluster.x == before));
    for (const auto& model : cluster.x) {
      CHECK(std::all_of(model.begin(), model.end(), [](float v) { return std::isfinite(v); }));
    }
  }
}

TEST_CASE(
    "bytes: 8 d (n − 1)/n a round before the freeze, thereafter a chunk's encoding each way") {
  constexpr std::size_t kNodes = 4;
  constexpr std::size_t kDimension = 1002;  // chunks of 251, 251, 250, 250
  Cluster cluster({.algorithm = "onebit-adam",
                   .compressor = "sign",
                   .nodes = kNodes,
                   .dimension = kDimension,
                   .freeze_step = 3});
  const auto expect_traffic = [&](std::uint64_t rounds, auto bytes_of) {
    for (std::size_t from = 0; from < kNodes; ++from) {
      for (std::size_t to = 0; to < kNodes; ++to) {
        if (from == to) {
          continue;
        }
        const auto& edge =
            cluster.driver.traffic().at({static_cast<Rank>(from), static_cast<Rank>(to)});
        CHECK(edge.frames == 2 * rounds);
        CHECK(edge.bytes == bytes_of(from, to));
      }
    }
  };
  const auto size = [](std::size_t node) {
    return chunk_of(kDimension, kNodes, static_cast<int>(node)).size;
  };
  const auto plain = [&](std::size_t from, std::size_t to) {
    return 3 * (4 * (size(from) + size(to)) + 2 * kFrameHeaderBytes);
  };
  REQUIRE(cluster.driver.run(3, noisy).ok());
  expect_traffic(3, plain);
  REQUIRE(cluster.driver.run(7, noisy).ok());
  const auto sign = make_compressor("sign");
  expect_traffic(10, [&](std::size_t from, std::size_t to) {
    return plain(from, to) +
           7 * (sign->max_bytes(size(from)) + sign->max_bytes(size(to)) + 2 * kFrameHeaderBytes);
  });
}

TEST_CASE("left to itself, 1-bit Adam freezes once the variance no longer falls") {
  ClusterOptions options{.algorithm = "onebit-adam",
                         .nodes = 3,
                         .dimension = 20,
                         .step = {.beta2 = 0.9},  // Δ = 10
                         .freeze_step = {}};
  const auto size_of_gradient = [](auto size) {
    return [size](Rank, Round round, std::span<const float>, std::span<float> g) {
      std::fill(g.begin(), g.end(), size(round));
    };
  };
  const auto constant = size_of_gradient([](Round) { return 1.0F; });
  const auto falling =
      size_of_gradient([](Round t) { return std::pow(0.9F, static_cast<float>(t)); });
  const auto late = size_of_gradient([](Round t) { return t < 30 ? 0.0F : 1.0F; });
  const auto settling = size_of_gradient(
      [](Round t) { return t < 20 ? 1.0F - 0.045F * static_cast<float>(t) : 0.1F; });
  const auto frozen_after = [&](const GradientFunction& gradient) {
    Cluster cluster(options);
    return rounds_until_frozen(cluster, 120, gradient);
  };
  CHECK(frozen_after(constant) == 20);
  CHECK(frozen_after(late) == 50);
  CHECK(frozen_after(falling) == 120);
  const Round settled = frozen_after(settling);
  CHECK(settled % 10 == 0);
  CHECK(settled > 40);
  CHECK(settled < 120);
  options.dimension = 0;
  CHECK(frozen_after(constant) == 120);
}

TEST_CASE(
    "a run saved before it froze by itself freezes in the same round, and continues to the bit") {
  const ClusterOptions options{.algorithm = "onebit-adam",
                               .nodes = 3,
                               .dimension = 20,
                               .step = {.learning_rate = 0.01, .beta2 = 0.9},
                               .freeze_step = {}};
  Cluster whole(options);
  REQUIRE(rounds_until_frozen(whole, 100, noisy) < 100);
  const Round frozen_after = whole.driver.node(0).round();
  REQUIRE(whole.driver.run(20, noisy).ok());

  Cluster first(options);
  REQUIRE(first.driver.run(frozen_after - 5, noisy).ok());
  Cluster second(options);
  second.x = first.x;
  for (std::size_t i = 0; i < 3; ++i) {
    ByteBuffer bytes;
    first.driver.node(i).save(bytes);
    ByteReader in(bytes.bytes());
    REQUIRE(second.driver.node(i).load(in).ok());
  }
  CHECK(rounds_until_frozen(second, 100, noisy) == 5);
  REQUIRE(second.driver.run(20, noisy).ok());
  CHECK(second.x == whole.x);

  auto other = options;
  other.freeze_step = 7;
  Cluster given(other);
  ByteBuffer bytes;
  first.driver.node(0).save(bytes);
  ByteReader in(bytes.bytes());
  CHECK(given.driver.node(0).load(in).message() ==
        "checkpoint of a run that freezes the variance by itself where it is to be after round 7");
}

TEST_CASE("one bit an element reaches what Adam reaches, with gradient noise") {
  StepRuleOptions step{.rule = "adam", .learning_rate = 0.05};
  step.schedule = parse_schedule("cosine", 1000);
  const auto excess = [&](const std::string& algorithm) {
    Cluster cluster({.algorithm = algorithm, .step = step, .freeze_step = 200});
    const Quadratic task(8, 64, 11, 0.5);
    const Status status = cluster.driver.run(1000, task);
    CAPTURE(status.message());
    REQUIRE(status.ok());
    return task.excess(cluster.mean());
  };
  const double adam = excess("allreduce");
  const double squeezed = excess("onebit-adam");
  CAPTURE(adam);
  CAPTURE(squeezed);
  CHECK(adam < 0.05);
  CHECK(squeezed < 2 * adam);
}

}  // namespace sotto::test::apm_squeeze_test
