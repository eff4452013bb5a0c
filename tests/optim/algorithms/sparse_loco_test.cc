// SparseLoCo: sparse movements to all, with an error that decays.
#include <sotto/optim/algorithms/sparse_loco.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/base/error.h>
#include <sotto/base/frame.h>
#include <sotto/optim/wrappers/local_steps.h>

#include "optim/cluster.h"
#include "optim/noise.h"
#include "optim/saved_state.h"

namespace sotto::test::sparse_loco_test {

namespace {

constexpr std::size_t kNodes = 5;
constexpr std::size_t kDimension = 40;

std::uint64_t draw_seed(std::uint32_t number) {
  RandomStream stream({.seed = 2508'15706, .round = number, .purpose = Purpose::test});
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

std::span<const float> error_of(const Cluster& cluster, std::size_t rank, bool local_steps) {
  return local_steps
             ? dynamic_cast<const SparseLoco&>(cluster.node<LocalSteps>(rank).inner()).error()
             : cluster.node<SparseLoco>(rank).error();
}

/// C(v), and v ← v − C(v).
std::vector<float> taken(Compressor& codec, std::vector<float>& v) {
  std::vector<std::byte> bytes(codec.max_bytes(v.size()));
  const std::size_t used = codec.encode_residual(v, {}, bytes);
  std::vector<float> sent(v.size());
  REQUIRE(codec.decode_add(std::span(bytes).first(used), 1, sent).ok());
  return sent;
}

double length(const std::vector<float>& v) {
  double squares = 0;
  for (const float value : v) {
    squares += static_cast<double>(value) * static_cast<double>(value);
  }
  return std::sqrt(squares);
}

/// The nodes' messages c_j in round `round`, with their errors e_j before it, which go on.
std::vector<std::vector<float>> messages(const GradientFunction& gradient, Round round,
                                         double decay, Compressor& codec,
                                         std::vector<std::vector<float>>& errors) {
  std::vector<std::vector<float>> sent;
  std::vector<float> g(kDimension);
  for (std::size_t i = 0; i < errors.size(); ++i) {
    gradient(static_cast<Rank>(i), round, {}, g);
    for (std::size_t k = 0; k < kDimension; ++k) {
      errors[i][k] = static_cast<float>(decay) * errors[i][k] + g[k];
    }
    sent.push_back(taken(codec, errors[i]));
  }
  return sent;
}

}  // namespace

TEST_CASE("sparseloco with an exact compressor is allreduce, and with local steps local SGD") {
  std::uint32_t number = 0;
  for (const std::string compressor : {"none", "topk:1,values=32,chunk=16"}) {
    for (const std::string spec : {"sparseloco:decay=1", "sparseloco"}) {
      for (const Round interval : {Round{1}, Round{5}}) {
        const std::uint64_t seed = draw_seed(number++);
        CAPTURE(compressor);
        CAPTURE(spec);
        CAPTURE(interval);
        CAPTURE(seed);
        auto options = options_for(spec, compressor, seed);
        options.communication_interval = interval;
        Cluster sparse(options);
        options.algorithm = "allreduce";
        options.compressor = "none";
        Cluster ring(options);
        const Quadratic task(kNodes, kDimension, seed, 0.1);
        REQUIRE(sparse.driver.run(8 * interval + interval / 2, task).ok());
        REQUIRE(ring.driver.run(8 * interval + interval / 2, task).ok());
        for (std::size_t i = 0; i < kNodes; ++i) {
          CHECK(largest_gap(sparse.x[i], ring.x[i]) < 1e-5);
        }
      }
    }
  }
}

TEST_CASE("sparseloco: less what nodes hold back the model follows the mean movement exactly") {
  std::uint32_t number = 100;
  for (const std::string compressor :
       {"topk:0.1,values=2,chunk=20", "topk:0.1", "sign", "quant:2"}) {
    for (const Round interval : {Round{1}, Round{4}}) {
      for (const double outer_rate : {1.0, 0.7}) {
        const std::uint64_t seed = draw_seed(number++);
        CAPTURE(compressor);
        CAPTURE(interval);
        CAPTURE(outer_rate);
        CAPTURE(seed);
        const bool local = interval > 1;
        auto options = options_for("sparseloco:decay=1", compressor, seed);
        options.communication_interval = interval;
        if (local) {
          options.outer_step = StepRuleOptions{.learning_rate = outer_rate};
        }
        Cluster cluster(options);
        const auto gradient = noise_of(seed);
        std::vector<double> x = cluster.mean();
        std::vector<float> g(kDimension);
        const double rate = local ? outer_rate : 0.05;
        const double measured = 0.05 * (local ? outer_rate : 1);
        for (Round t = 0; t < 60; ++t) {
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
          for (std::size_t k = 0; k < kDimension; ++k) {
            double held = 0;
            for (std::size_t i = 0; i < kNodes; ++i) {
              held += static_cast<double>(error_of(cluster, i, local)[k]) / kNodes;
            }
            REQUIRE(std::fabs(static_cast<double>(cluster.x[2][k]) - rate * held - x[k]) < 2e-5);
          }
        }
      }
    }
  }
}

TEST_CASE(
    "sparseloco: the mean of β e_i + v_i, of as many elements as are kept, is what is applied") {
  for (const double decay : {1.0, 0.75}) {  // with β = 1 and no local steps: SGD with memory
    const std::uint64_t seed = draw_seed(200);
    CAPTURE(decay);
    CAPTURE(seed);
    Cluster cluster(options_for("sparseloco:decay=" + std::to_string(decay), "topk:0.1", seed));
    const auto gradient = noise_of(seed);
    const auto codec = make_compressor("topk:0.1");
    std::vector<std::vector<float>> errors(kNodes, std::vector<float>(kDimension));
    for (Round t = 0; t < 20; ++t) {
      const auto before = cluster.x[0];
      const auto sent = messages(gradient, t, decay, *codec, errors);
      REQUIRE(cluster.driver.run(1, gradient).ok());
      std::size_t moved = 0;
      for (std::size_t k = 0; k < kDimension; ++k) {
        double mean = 0;
        for (const auto& message : sent) {
          mean += static_cast<double>(message[k]) / kNodes;
        }
        moved += cluster.x[0][k] != before[k] ? 1U : 0U;
        REQUIRE(std::fabs(static_cast<double>(before[k] - cluster.x[0][k]) - 0.05 * mean) < 1e-6);
      }
      CHECK(moved > 0);
      CHECK(moved <= kNodes * kDimension / 10);
      for (std::size_t i = 0; i < kNodes; ++i) {
        CHECK(largest_gap(cluster.node<SparseLoco>(i).error(), errors[i]) < 1e-5);
      }
    }
  }
}

TEST_CASE("sparseloco: aggregate=count divides by the nodes that sent an element") {
  const std::uint64_t seed = draw_seed(300);
  CAPTURE(seed);
  Cluster cluster(options_for("sparseloco:aggregate=count,decay=1", "topk:0.2", seed));
  const auto gradient = noise_of(seed);
  const auto codec = make_compressor("topk:0.2");
  std::vector<std::vector<float>> errors(kNodes, std::vector<float>(kDimension));
  for (Round t = 0; t < 10; ++t) {
    const auto before = cluster.x[0];
    const auto sent = messages(gradient, t, 1, *codec, errors);
    REQUIRE(cluster.driver.run(1, gradient).ok());
    for (std::size_t k = 0; k < kDimension; ++k) {
      double sum = 0;
      int senders = 0;
      for (const auto& message : sent) {
        sum += static_cast<double>(message[k]);
        senders += message[k] != 0 ? 1 : 0;
      }
      const double mean = senders == 0 ? 0 : sum / senders;
      REQUIRE(std::fabs(static_cast<double>(before[k] - cluster.x[0][k]) - 0.05 * mean) < 1e-6);
    }
    for (const auto& model : cluster.x) {
      REQUIRE(same_bits(model, cluster.x[0]));
    }
  }
}

TEST_CASE("sparseloco: clip=median bounds each message by the median of their norms") {
  for (const std::size_t nodes : {std::size_t{4}, std::size_t{5}, std::size_t{1}}) {
    const std::uint64_t seed = draw_seed(400);
    CAPTURE(nodes);
    CAPTURE(seed);
    auto options = options_for("sparseloco:clip=median,decay=1", "topk:0.25", seed);
    options.nodes = nodes;
    Cluster cluster(options);
    const auto gradient = shouted(noise_of(seed));
    const auto codec = make_compressor("topk:0.25");
    std::vector<std::vector<float>> errors(nodes, std::vector<float>(kDimension));
    for (Round t = 0; t < 8; ++t) {
      const auto before = cluster.x[0];
      const auto sent = messages(gradient, t, 1, *codec, errors);
      REQUIRE(cluster.driver.run(1, gradient).ok());
      std::vector<double> norms;
      for (const auto& message : sent) {
        norms.push_back(length(message));
      }
      auto sorted = norms;
      std::ranges::sort(sorted);
      const double median = sorted[(nodes - 1) / 2];
      for (std::size_t k = 0; k < kDimension; ++k) {
        double mean = 0;
        for (std::size_t j = 0; j < nodes; ++j) {
          mean += std::fmin(1, median / norms[j]) * static_cast<double>(sent[j][k]);
        }
        mean /= static_cast<double>(nodes);
        const double moved = static_cast<double>(before[k] - cluster.x[0][k]);
        REQUIRE(std::fabs(moved - 0.05 * mean) < 1e-5 * std::fmax(1, std::fabs(mean)));
      }
      for (const auto& model : cluster.x) {
        REQUIRE(same_bits(model, cluster.x[0]));
      }
    }
  }
}

TEST_CASE("sparseloco: clip=median goes by the nodes that move, and zeros hold nobody") {
  for (const std::size_t still : {std::size_t{2}, std::size_t{3}, kNodes - 1, kNodes}) {
    const std::uint64_t seed = draw_seed(450);
    CAPTURE(still);
    CAPTURE(seed);
    Cluster cluster(options_for("sparseloco:clip=median,decay=1", "none", seed));
    const auto gradient = [&](Rank rank, Round /*round*/, std::span<const float> /*x*/,
                              std::span<float> g) {
      std::ranges::fill(g, static_cast<std::size_t>(rank) < still ? 0.0F : 1.0F);
    };
    const auto before = cluster.x[0];
    REQUIRE(cluster.driver.run(1, gradient).ok());
    const double mean = static_cast<double>(kNodes - still) / kNodes;
    for (std::size_t k = 0; k < kDimension; ++k) {
      const double moved = static_cast<double>(before[k] - cluster.x[0][k]);
      REQUIRE(moved == doctest::Approx(0.05 * mean).epsilon(1e-4));
    }
  }
}

TEST_CASE("sparseloco: weights and clip=median, which would cut them off, are refused together") {
  const auto refusal = [](const std::string& algorithm, Round interval,
                          std::vector<std::vector<Rank>> groups = {}) -> std::string {
    auto options = options_for(algorithm, groups.empty() ? "topk:0.1" : "quant:4", 1);
    options.nodes = 4;
    options.groups = std::move(groups);
    options.communication_interval = interval;
    std::vector<float> x(kDimension, 1);
    AlgorithmSetup setup = node_setup(options, 0, x, cluster_topology(options));
    setup.weighted = true;
    try {
      (void)make_algorithm(algorithm, std::move(setup));
    } catch (const Error& error) {
      CHECK(error.field() == "algorithm");
      return error.what();
    }
    return {};
  };
  for (const Round interval : {Round{1}, Round{4}}) {
    CHECK(refusal("sparseloco:clip=median", interval).find("leave clip or the weights out") !=
          std::string::npos);
    CHECK(refusal("sparseloco:clip=none", interval).empty());
  }
  CHECK_FALSE(refusal("sparseloco:clip=median", 1, {{0, 1}, {2, 3}}).empty());
  CHECK(refusal("sparseloco", 1, {{0, 1}, {2, 3}}).empty());
}

TEST_CASE("sparseloco: all nodes stay equal to the bit, whatever their number and the settings") {
  std::uint32_t number = 500;
  for (const std::size_t nodes : {1U, 2U, 3U, 8U, 17U}) {
    for (const std::string spec : {"sparseloco", "sparseloco:decay=1,clip=median",
                                   "sparseloco:aggregate=count,clip=median"}) {
      for (const std::string compressor : {"topk:0.05,values=2,chunk=16", "sign", "quant:4"}) {
        const std::uint64_t seed = draw_seed(number++);
        CAPTURE(nodes);
        CAPTURE(spec);
        CAPTURE(compressor);
        CAPTURE(seed);
        auto options = options_for(spec, compressor, seed);
        options.nodes = nodes;
        options.communication_interval = 3;
        options.delivery = Delivery::late;
        Cluster cluster(options);
        const Quadratic task(nodes, kDimension, seed, 0.1);
        for (int exchange = 0; exchange < 4; ++exchange) {
          const Status status = cluster.driver.run(3, task);
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

TEST_CASE("sparseloco sends its message to all others, and the default is that of the paper") {
  constexpr Round kExchanges = 4;
  const std::uint64_t seed = draw_seed(600);
  CAPTURE(seed);
  auto options = options_for("sparseloco", "", seed);
  options.dimension = 3 * 4096;
  options.communication_interval = 5;
  Cluster cluster(options);
  REQUIRE(cluster.driver.run(5 * kExchanges, Quadratic(kNodes, options.dimension, seed, 0.3)).ok());
  const auto frames = (kNodes - 1) * kExchanges;
  const double bits =
      8 * static_cast<double>(cluster.driver.bytes_sent(0) - frames * kFrameHeaderBytes) /
      static_cast<double>(frames * options.dimension);
  CHECK(bits > 0.2);
  CHECK(bits < 0.28);  // 3 % in 2 bits, with their places
}

TEST_CASE("sparseloco warns of a momentum in the outer rule, which its error stands for") {
  std::vector<float> x(kDimension, 1);
  const auto warnings = [&](double momentum, const std::string& algorithm) {
    auto options = options_for(algorithm, "topk:0.1", 1);
    options.communication_interval = 4;
    options.outer_step = StepRuleOptions{.learning_rate = 0.7, .momentum = momentum};
    std::vector<std::string> told;
    (void)make_algorithm(algorithm, node_setup(options, 0, x, cluster_topology(options)), &told);
    return told;
  };
  const auto told = warnings(0.9, "sparseloco");
  REQUIRE(told.size() == 1);
  CHECK(told.front().find("counts twice") != std::string::npos);
  CHECK(warnings(0, "sparseloco").empty());
  CHECK(warnings(0.9, "qmean").empty());
}

}  // namespace sotto::test::sparse_loco_test
