// Compressed means for any step rule, and as the exchange of local steps.
#include <sotto/optim/algorithms/q_mean.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/base/error.h>
#include <sotto/base/frame.h>
#include <sotto/optim/exchange/chunks.h>
#include <sotto/optim/wrappers/local_steps.h>

#include "optim/cluster.h"
#include "optim/noise.h"

namespace sotto::test::q_mean_test {

namespace {

constexpr std::size_t kNodes = 5;
constexpr std::size_t kDimension = 33;

std::uint64_t draw_seed(std::uint32_t number) {
  RandomStream stream({.seed = 1905'05957, .round = number, .purpose = Purpose::test});
  return stream.next_u64() >> 40U;
}

ClusterOptions options_for(std::string algorithm, std::string compressor, std::uint64_t seed) {
  return {.algorithm = std::move(algorithm),
          .compressor = std::move(compressor),
          .nodes = kNodes,
          .dimension = kDimension,
          .step = {.learning_rate = 0.05},
          .seed = seed};
}

const QMean& inner_of(const Cluster& cluster, std::size_t rank, bool local_steps) {
  return local_steps ? dynamic_cast<const QMean&>(cluster.node<LocalSteps>(rank).inner())
                     : cluster.node<QMean>(rank);
}

/// (1/n) Σ_i e_i + ē, what both passes hold back.
std::vector<double> held_back(const Cluster& cluster, bool local_steps) {
  std::vector<double> held(kDimension);
  for (std::size_t i = 0; i < kNodes; ++i) {
    const ChunkMean& mean = inner_of(cluster, i, local_steps).chunk_mean();
    for (std::size_t k = 0; k < kDimension; ++k) {
      held[k] += static_cast<double>(mean.error()[k]) / kNodes;
    }
    const Chunk own = chunk_of(kDimension, kNodes, static_cast<int>(i));
    for (std::size_t k = 0; k < own.size; ++k) {
      held[own.offset + k] += static_cast<double>(mean.chunk_error()[k]);
    }
  }
  return held;
}

/// The mean of all vectors, each of which counts in a chunk as its length there allows.
std::vector<double> clipped_mean(const std::vector<std::vector<float>>& vectors) {
  const auto nodes = static_cast<int>(vectors.size());
  std::vector<double> mean(vectors.front().size());
  for (int owner = 0; owner < nodes; ++owner) {
    const Chunk part = chunk_of(mean.size(), nodes, owner);
    std::vector<double> lengths;
    for (const auto& v : vectors) {
      double squares = 0;
      for (const float value : part.of(std::span(v))) {
        squares += static_cast<double>(value) * static_cast<double>(value);
      }
      lengths.push_back(std::sqrt(squares));
    }
    auto sorted = lengths;
    std::ranges::sort(sorted);
    const double median = sorted[(sorted.size() - 1) / 2];
    for (std::size_t j = 0; j < vectors.size(); ++j) {
      for (std::size_t k = part.offset; k < part.offset + part.size; ++k) {
        mean[k] += std::fmin(1, median / lengths[j]) * static_cast<double>(vectors[j][k]) / nodes;
      }
    }
  }
  return mean;
}

double largest_gap(const Cluster& a, const Cluster& b) {
  double gap = 0;
  for (std::size_t i = 0; i < a.x.size(); ++i) {
    for (std::size_t k = 0; k < a.x[i].size(); ++k) {
      gap = std::fmax(gap, std::fabs(static_cast<double>(a.x[i][k] - b.x[i][k])));
    }
  }
  return gap;
}

}  // namespace

TEST_CASE("qmean without compression is allreduce, with any step rule and any decay") {
  std::uint32_t number = 0;
  for (const StepRuleOptions& step :
       {StepRuleOptions{.learning_rate = 0.05},
        StepRuleOptions{.learning_rate = 0.05, .momentum = 0.9, .nesterov = true},
        StepRuleOptions{.rule = "adam", .learning_rate = 0.01},
        StepRuleOptions{.rule = "lars", .learning_rate = 1, .momentum = 0.5}}) {
    for (const std::string spec : {"qmean", "qmean:decay=0.5"}) {
      const std::uint64_t seed = draw_seed(number++);
      CAPTURE(step.rule);
      CAPTURE(spec);
      CAPTURE(seed);
      auto options = options_for(spec, "none", seed);
      options.step = step;
      Cluster mean(options);
      options.algorithm = "allreduce";
      Cluster ring(options);
      const Quadratic task(kNodes, kDimension, seed, 0.1);
      REQUIRE(mean.driver.run(60, task).ok());
      REQUIRE(ring.driver.run(60, task).ok());
      CHECK(largest_gap(mean, ring) < 1e-4);
    }
  }
}

TEST_CASE("qmean without compression and with local steps is DiLoCo") {
  const std::uint64_t seed = draw_seed(100);
  CAPTURE(seed);
  auto options = options_for("qmean", "none", seed);
  options.step = {.rule = "adamw", .learning_rate = 0.01};
  options.communication_interval = 5;
  options.outer_step = StepRuleOptions{.learning_rate = 0.7, .momentum = 0.9, .nesterov = true};
  Cluster mean(options);
  options.algorithm = "allreduce";
  Cluster ring(options);
  const Quadratic task(kNodes, kDimension, seed, 0.1);
  for (const Round rounds : {Round{23}, Round{37}}) {  // also between two exchanges
    REQUIRE(mean.driver.run(rounds, task).ok());
    REQUIRE(ring.driver.run(rounds, task).ok());
    CHECK(largest_gap(mean, ring) < 1e-4);
  }
}

TEST_CASE("qmean: with all that is held back the model follows SGD on the mean gradient exactly") {
  constexpr double kOuterRate = 0.7;
  std::uint32_t number = 200;
  for (const std::string compressor : {"sign", "topk:0.1", "quant:2", "quant:4", "none"}) {
    for (const Round interval : {Round{1}, Round{4}}) {
      const std::uint64_t seed = draw_seed(number++);
      CAPTURE(compressor);
      CAPTURE(interval);
      CAPTURE(seed);
      const bool local = interval > 1;
      auto options = options_for("qmean", compressor, seed);
      options.communication_interval = interval;
      if (local) {
        options.outer_step = StepRuleOptions{.learning_rate = kOuterRate};
      }
      Cluster cluster(options);
      const auto gradient = noise_of(seed);
      std::vector<double> x = cluster.mean();
      std::vector<float> g(kDimension);
      // What an exchange applies of what the errors hold is γ under SGD, γ_o of Δ with local steps.
      const double rate = local ? kOuterRate : 0.05;
      const double measured = 0.05 * (local ? kOuterRate : 1);
      for (Round t = 0; t < 80; ++t) {
        for (std::size_t i = 0; i < kNodes; ++i) {
          gradient(static_cast<Rank>(i), t, {}, g);
          for (std::size_t k = 0; k < kDimension; ++k) {
            x[k] -= measured * static_cast<double>(g[k]) / kNodes;
          }
        }
        REQUIRE(cluster.driver.run(1, gradient).ok());
        if ((t + 1) % interval != 0) {
          continue;
        }
        const auto held = held_back(cluster, local);
        for (std::size_t k = 0; k < kDimension; ++k) {
          REQUIRE(std::fabs(static_cast<double>(cluster.x[2][k]) - rate * held[k] - x[k]) < 2e-5);
        }
      }
    }
  }
}

TEST_CASE("qmean: errors hold gradients, whose rate counts once, also where it changes") {
  const std::uint64_t seed = draw_seed(300);
  CAPTURE(seed);
  auto options = options_for("qmean", "sign", seed);
  options.step.learning_rate = 0.25;
  Cluster slow(options);
  options.step.learning_rate = 0.5;
  Cluster fast(options);
  const auto start = slow.x;
  const auto gradient = noise_of(seed);
  for (int t = 0; t < 30; ++t) {
    REQUIRE(slow.driver.run(1, gradient).ok());
    REQUIRE(fast.driver.run(1, gradient).ok());
    for (std::size_t i = 0; i < kNodes; ++i) {
      CHECK(same_bits(slow.node<QMean>(i).chunk_mean().error(),
                      fast.node<QMean>(i).chunk_mean().error()));
      for (std::size_t k = 0; k < kDimension; ++k) {
        const float moved = slow.x[i][k] - start[i][k];
        REQUIRE(std::fabs(fast.x[i][k] - start[i][k] - 2 * moved) < 1e-5F);
      }
    }
  }
}

TEST_CASE("qmean: the decayed error is β e_i + v_i less what was sent") {
  const std::uint64_t seed = draw_seed(400);
  CAPTURE(seed);
  constexpr double kDecay = 0.75;
  Cluster cluster(options_for("qmean:decay=0.75", "topk:0.2", seed));
  const auto gradient = noise_of(seed);
  const auto codec = make_compressor("topk:0.2");
  std::vector<std::vector<float>> errors(kNodes, std::vector<float>(kDimension));
  std::vector<float> g(kDimension);
  std::vector<std::byte> bytes(codec->max_bytes(kDimension));
  for (Round t = 0; t < 20; ++t) {
    REQUIRE(cluster.driver.run(1, gradient).ok());
    for (std::size_t i = 0; i < kNodes; ++i) {
      gradient(static_cast<Rank>(i), t, {}, g);
      for (std::size_t k = 0; k < kDimension; ++k) {
        errors[i][k] = static_cast<float>(kDecay) * errors[i][k] + g[k];
      }
      for (int owner = 0; owner < static_cast<int>(kNodes); ++owner) {
        const auto part = chunk_of(kDimension, kNodes, owner).of(std::span(errors[i]));
        codec->encode_residual(part, {}, bytes);
      }
      const auto held = cluster.node<QMean>(i).chunk_mean().error();
      for (std::size_t k = 0; k < kDimension; ++k) {
        REQUIRE(std::fabs(held[k] - errors[i][k]) < 1e-5F);
      }
    }
  }
}

TEST_CASE("qmean: all nodes stay equal to the bit, whatever their number and the compressor") {
  std::uint32_t number = 500;
  for (const std::size_t nodes : {1U, 2U, 3U, 8U, 17U}) {
    for (const std::string compressor : {"sign", "topk:0.1", "quant:4", "quant:2", "fp16"}) {
      for (const Round interval : {Round{1}, Round{3}}) {
        const std::uint64_t seed = draw_seed(number++);
        CAPTURE(nodes);
        CAPTURE(compressor);
        CAPTURE(interval);
        CAPTURE(seed);
        auto options = options_for("qmean:decay=0.9", compressor, seed);
        options.nodes = nodes;
        options.communication_interval = interval;
        options.outer_step = StepRuleOptions{.learning_rate = 0.7, .momentum = 0.9};
        options.delivery = Delivery::late;
        Cluster cluster(options);
        const Quadratic task(nodes, kDimension, seed, 0.1);
        for (int exchange = 0; exchange < 5; ++exchange) {
          const Status status = cluster.driver.run(interval, task);
          CAPTURE(status.message());
          REQUIRE(status.ok());
          for (const auto& model : cluster.x) {
            REQUIRE(same_bits(model, cluster.x[0]));
          }
        }
      }
    }
  }
}

TEST_CASE("qmean: a node alone is not spared the compression") {
  const std::uint64_t seed = draw_seed(600);
  CAPTURE(seed);
  auto options = options_for("qmean", "topk:0.1", seed);
  options.nodes = 1;
  Cluster alone(options);
  const auto start = alone.x[0];
  REQUIRE(alone.driver.run(1, noise_of(seed)).ok());
  std::size_t moved = 0;
  for (std::size_t k = 0; k < kDimension; ++k) {
    moved += alone.x[0][k] != start[k] ? 1U : 0U;
  }
  CHECK(moved > 0);
  CHECK(moved < kDimension / 4);
}

TEST_CASE("qmean sends a chunk's encoding each way") {
  constexpr Round kRounds = 7;
  const std::uint64_t seed = draw_seed(700);
  CAPTURE(seed);
  Cluster cluster(options_for("qmean", "sign", seed));
  REQUIRE(cluster.driver.run(kRounds, noise_of(seed)).ok());
  const auto sign = make_compressor("sign");
  const auto bytes = [&](int node) {
    return sign->max_bytes(chunk_of(kDimension, kNodes, node).size) + kFrameHeaderBytes;
  };
  std::size_t expected = 0;
  for (int other = 1; other < static_cast<int>(kNodes); ++other) {
    expected += kRounds * (bytes(other) + bytes(0));
  }
  CHECK(cluster.driver.bytes_sent(0) == expected);
}

TEST_CASE("qmean: clip=median bounds a node's part of each chunk by the median of their lengths") {
  for (const std::size_t nodes : {std::size_t{1}, std::size_t{4}, std::size_t{5}}) {
    const std::uint64_t seed = draw_seed(800);
    CAPTURE(nodes);
    CAPTURE(seed);
    auto options = options_for("qmean:clip=median", "none", seed);
    options.nodes = nodes;
    Cluster cluster(options);
    const auto gradient = shouted(noise_of(seed));
    std::vector<std::vector<float>> g(nodes, std::vector<float>(kDimension));
    for (Round t = 0; t < 8; ++t) {
      for (std::size_t i = 0; i < nodes; ++i) {
        gradient(static_cast<Rank>(i), t, {}, g[i]);
      }
      const auto mean = clipped_mean(g);
      const auto before = cluster.x[0];
      REQUIRE(cluster.driver.run(1, gradient).ok());
      for (std::size_t k = 0; k < kDimension; ++k) {
        const double moved = static_cast<double>(before[k] - cluster.x[0][k]);
        REQUIRE(std::fabs(moved - 0.05 * mean[k]) < 1e-5 * std::fmax(1, std::fabs(mean[k])));
      }
      for (const auto& model : cluster.x) {
        REQUIRE(same_bits(model, cluster.x[0]));
      }
    }
  }
}

TEST_CASE("qmean: clip=median changes no bit where all nodes send parts of one length") {
  for (const std::string compressor : {"none", "sign", "quant:4"}) {
    const std::uint64_t seed = draw_seed(810);
    CAPTURE(compressor);
    CAPTURE(seed);
    Cluster clipped(options_for("qmean:clip=median", compressor, seed));
    Cluster plain(options_for("qmean", compressor, seed));
    const auto same = [&](Rank /*rank*/, Round round, std::span<const float> x,
                          std::span<float> g) { noise_of(seed)(0, round, x, g); };
    REQUIRE(clipped.driver.run(20, same).ok());
    REQUIRE(plain.driver.run(20, same).ok());
    for (std::size_t i = 0; i < kNodes; ++i) {
      REQUIRE(same_bits(clipped.x[i], plain.x[i]));
    }
  }
}

TEST_CASE("qmean: a node that diverges between rare exchanges takes the others nowhere") {
  constexpr Round kInterval = 4;
  for (const std::string compressor : {"none", "quant:4"}) {
    const std::uint64_t seed = draw_seed(820);
    CAPTURE(compressor);
    CAPTURE(seed);
    const Quadratic task(kNodes, kDimension, seed);
    const auto excess = [&](const std::string& algorithm) {
      auto options = options_for(algorithm, compressor, seed);
      options.communication_interval = kInterval;
      options.outer_step = StepRuleOptions{.learning_rate = 0.7, .momentum = 0.5};
      Cluster cluster(options);
      if (!cluster.driver.run(50 * kInterval, shouted(task)).ok()) {
        return std::numeric_limits<double>::infinity();
      }
      for (const auto& model : cluster.x) {
        REQUIRE(same_bits(model, cluster.x[0]));
      }
      return task.excess(cluster.mean());
    };
    const double start = task.excess(Cluster(options_for("qmean", compressor, seed)).mean());
    CHECK(excess("qmean:clip=median") < start / 4);
    CHECK(excess("qmean") > 100 * start);
  }
}

TEST_CASE("qmean: clip=median is not for weighted nodes, nor for rings, and says what is") {
  const auto refusal = [](const std::string& algorithm) -> std::string {
    const auto options = options_for("qmean", "quant:4", 1);
    std::vector<float> x(kDimension, 1);
    AlgorithmSetup setup = node_setup(options, 0, x, cluster_topology(options));
    setup.weighted = true;
    try {
      (void)make_algorithm(algorithm, std::move(setup));
    } catch (const Error& error) {
      return error.what();
    }
    return {};
  };
  CHECK(refusal("qmean:clip=median").find("leave clip or the weights out") != std::string::npos);
  CHECK(refusal("qmean").empty());
  CHECK(refusal("allreduce:clip=median").find("'clip' is of ") != std::string::npos);
}

}  // namespace sotto::test::q_mean_test
