// The outer step rule on what mixing made of the nodes' movements (NoLoCo).
#include <sotto/optim/wrappers/outer_after_mixing.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/base/error.h>
#include <sotto/base/names.h>
#include <sotto/optim/wrappers/local_steps.h>

#include "optim/cluster.h"
#include "optim/noise.h"
#include "optim/saved_state.h"

namespace sotto::test::outer_after_mixing_test {

namespace {

constexpr std::size_t kNodes = 6;
constexpr std::size_t kDimension = 30;
constexpr Round kInterval = 4;

std::uint64_t draw_seed(std::uint32_t number) {
  RandomStream stream({.seed = 2506'10911, .round = number, .purpose = Purpose::test});
  return stream.next_u64() >> 40U;
}

ClusterOptions options_for(std::string algorithm, std::string compressor, std::uint64_t seed) {
  return {.algorithm = std::move(algorithm),
          .compressor = std::move(compressor),
          .nodes = kNodes,
          .dimension = kDimension,
          .step = {.learning_rate = 0.05},
          .communication_interval = kInterval,
          .outer_step = StepRuleOptions{.learning_rate = 0.7, .momentum = 0.5},
          .outer_after_mixing = true,
          .seed = seed};
}

std::vector<std::string> movable_algorithms() {
  return names_with(algorithms(), &AlgorithmInfo::takes_outer_after_mixing);
}

}  // namespace

TEST_CASE("the mean model follows heavy ball on the mean movement, whatever graph and compressor") {
  std::uint32_t number = 0;
  for (const std::string topology : {"ring", "complete", "matching:8", "base:1"}) {
    for (const auto& [algorithm, compressor] :
         std::vector<std::pair<std::string, std::string>>{{"dpsgd", "none"},
                                                          {"choco", "none"},
                                                          {"choco", "sign"},
                                                          {"choco", "topk:0.2"},
                                                          {"deepsqueeze", "quant:4"},
                                                          {"powergossip", "lowrank:1"},
                                                          {"moniqua", "grid:8:0.1"}}) {
      const std::uint64_t seed = draw_seed(number++);
      CAPTURE(topology);
      CAPTURE(algorithm);
      CAPTURE(compressor);
      CAPTURE(seed);
      auto options = options_for(algorithm, compressor, seed);
      options.topology = topology;
      Cluster cluster(options);
      const auto gradient = noise_of(seed);
      std::vector<double> x = cluster.mean();
      std::vector<double> m(kDimension);
      std::vector<float> g(kDimension);
      for (Round exchange = 0; exchange < 20; ++exchange) {
        std::vector<double> movement(kDimension);
        for (Round t = exchange * kInterval; t < (exchange + 1) * kInterval; ++t) {
          for (std::size_t i = 0; i < kNodes; ++i) {
            gradient(static_cast<Rank>(i), t, {}, g);
            for (std::size_t k = 0; k < kDimension; ++k) {
              movement[k] += 0.05 * static_cast<double>(g[k]) / kNodes;
            }
          }
        }
        const Status status = cluster.driver.run(kInterval, gradient);
        REQUIRE_MESSAGE(status.ok(), status.message());
        const auto mean = cluster.mean();
        for (std::size_t k = 0; k < kDimension; ++k) {
          m[k] = 0.5 * m[k] - 0.7 * movement[k];
          x[k] += m[k];
          REQUIRE(std::fabs(mean[k] - x[k]) < 2e-5);
        }
      }
    }
  }
}

TEST_CASE("on a complete graph it is DiLoCo with that momentum") {
  const std::uint64_t seed = draw_seed(100);
  CAPTURE(seed);
  const Quadratic task(kNodes, kDimension, seed, 0.1);
  auto options = options_for("allreduce", "none", seed);
  options.outer_after_mixing = false;
  Cluster ring(options);
  REQUIRE(ring.driver.run(30, task).ok());
  for (const std::string algorithm : {"dpsgd", "choco:eta=1", "deepsqueeze:eta=1"}) {
    CAPTURE(algorithm);
    auto gossip = options_for(algorithm, "none", seed);
    gossip.topology = "complete";
    Cluster cluster(gossip);
    REQUIRE(cluster.driver.run(30, task).ok());
    for (std::size_t i = 0; i < kNodes; ++i) {
      CHECK(largest_gap(cluster.x[i], ring.x[i]) < 2e-5);
    }
  }
}

TEST_CASE("with a rate of 1 and no momentum it is gossip after local steps") {
  std::uint32_t number = 200;
  for (const std::string topology : {"ring", "matching:8"}) {
    const std::uint64_t seed = draw_seed(number++);
    CAPTURE(topology);
    CAPTURE(seed);
    auto options = options_for("dpsgd", "none", seed);
    options.topology = topology;
    options.outer_step = StepRuleOptions{.learning_rate = 1};
    Cluster cluster(options);
    const auto graph = cluster_topology(options);
    const auto gradient = noise_of(seed);
    auto x = cluster.x;
    std::vector<float> g(kDimension);
    for (Round exchange = 0; exchange < 12; ++exchange) {
      for (Round t = exchange * kInterval; t < (exchange + 1) * kInterval; ++t) {
        for (std::size_t i = 0; i < kNodes; ++i) {
          gradient(static_cast<Rank>(i), t, {}, g);
          for (std::size_t k = 0; k < kDimension; ++k) {
            x[i][k] -= 0.05F * g[k];
          }
        }
      }
      auto mixed = x;
      for (std::size_t i = 0; i < kNodes; ++i) {
        const auto rank = static_cast<Rank>(i);
        for (std::size_t k = 0; k < kDimension; ++k) {
          mixed[i][k] = graph->self_weight(rank, exchange) * x[i][k];
          for (const Edge& edge : graph->in_edges(rank, exchange)) {
            mixed[i][k] += edge.weight * x[static_cast<std::size_t>(edge.peer)][k];
          }
        }
      }
      x = mixed;
      REQUIRE(cluster.driver.run(kInterval, gradient).ok());
      for (std::size_t i = 0; i < kNodes; ++i) {
        REQUIRE(largest_gap(cluster.x[i], x[i]) < 1e-5);
      }
    }
  }
}

TEST_CASE("two partners that only mix differ as the recursion says, and agree where it is stable") {
  struct Coefficients {
    double rate;
    double momentum;
    bool stable;
  };
  for (const auto& [rate, momentum, stable] :
       {Coefficients{0.7, 0.5, true}, {0.7, 0.9, true}, {2.5, 0.5, true}, {3.2, 0.5, false}}) {
    CAPTURE(rate);
    CAPTURE(momentum);
    auto options = options_for("dpsgd", "none", 1);
    options.nodes = 2;
    options.topology = "complete";
    options.dimension = 1;
    options.outer_step = StepRuleOptions{.learning_rate = rate, .momentum = momentum};
    std::vector<std::vector<float>> x = {{1}, {-1}};
    LockstepDriver driver;
    for (std::size_t rank = 0; rank < 2; ++rank) {
      driver.add(
          make_algorithm("dpsgd", node_setup(options, rank, x[rank], cluster_topology(options))));
    }
    const auto rest = [](Rank, Round, std::span<const float>, std::span<float> g) { g[0] = 0; };
    double difference = 2;
    double velocity = 0;
    for (int exchange = 0; exchange < 60; ++exchange) {
      REQUIRE(driver.run(kInterval, rest).ok());
      velocity = momentum * velocity - rate * difference;
      difference += velocity;
      if (exchange < 12) {
        CHECK(static_cast<double>(x[0][0] - x[1][0]) == doctest::Approx(difference).epsilon(1e-3));
      }
    }
    CHECK((std::fabs(x[0][0] - x[1][0]) < 0.1F) == stable);
  }
}

TEST_CASE("every gossip whose model may be set takes it, in any order of delivery, and converges") {
  for (const std::string& algorithm : movable_algorithms()) {
    for (const std::uint32_t buckets : {1U, 3U}) {
      CAPTURE(algorithm);
      CAPTURE(buckets);
      if (buckets > 1 && !algorithm_info(algorithm).takes_buckets()) {
        continue;
      }
      auto options = options_for(algorithm, "", 3);
      options.dimension = buckets > 1 ? 2 * 4096 + 37 : kDimension;
      options.buckets = buckets;
      Cluster eager(options);
      options.delivery = Delivery::late;
      Cluster late(options);
      const Quadratic task(kNodes, options.dimension, 3);
      const double before = task.excess(eager.mean());
      for (const Round rounds : {Round{3}, Round{38}, Round{159}}) {
        const Status status = eager.driver.run(rounds, task);
        REQUIRE_MESSAGE(status.ok(), status.message());
        REQUIRE(late.driver.run(rounds, task).ok());
        CHECK(eager.x == late.x);
        for (std::size_t i = 0; i < kNodes; ++i) {
          CHECK(eager.driver.node(i).idle());
        }
      }
      CHECK(task.excess(eager.mean()) < before / 20);
    }
  }
}

TEST_CASE("outer rule after mixing: a run saved anywhere and loaded continues to the bit") {
  for (const std::string& algorithm : movable_algorithms()) {
    for (Round stop = 8; stop < 13; ++stop) {
      CAPTURE(algorithm);
      CAPTURE(stop);
      const auto options = options_for(algorithm, "", 5);
      const Quadratic task(kNodes, kDimension, 5, 0.2);
      Cluster whole(options);
      REQUIRE(whole.driver.run(30, task).ok());
      Cluster first(options);
      REQUIRE(first.driver.run(stop, task).ok());
      Cluster second(options);
      second.x = first.x;
      for (std::size_t rank = 0; rank < kNodes; ++rank) {
        const auto bytes = saved(first.driver.node(rank));
        ByteReader in(bytes);
        const Status status = second.driver.node(rank).load(in);
        REQUIRE_MESSAGE(status.ok(), status.message());
        CHECK(in.finished());
        for (std::size_t size = 0; size < bytes.size(); size += 7) {
          const auto piece = std::span(bytes).first(size);
          ByteReader cut(piece);
          Cluster other(options);
          CHECK_FALSE(other.driver.node(rank).load(cut).ok());
          if (rank > 0) {
            break;  // one node's is enough
          }
        }
      }
      REQUIRE(second.driver.run(30 - stop, task).ok());
      CHECK(second.x == whole.x);
    }
  }
}

TEST_CASE("outer rule after mixing: no further bytes, and what holds copies of models refuses it") {
  for (const AlgorithmInfo& info : algorithms()) {
    CAPTURE(info.name);
    auto options = options_for(std::string(info.name), "", 1);
    if (!info.takes_outer_after_mixing()) {
      std::vector<float> x(kDimension);
      std::string message;
      try {
        (void)make_algorithm(spec_of(options),
                             node_setup(options, 0, x, cluster_topology(options)));
      } catch (const Error& error) {
        message = error.what();
      }
      CAPTURE(message);
      CHECK(message.find("outer_after_mixing") == 0);
      CHECK(message.find("dpsgd") != std::string::npos);
      continue;
    }
    options.compressor = info.contract == ContractKind::contraction ? fitting("sign", info) : "";
    Cluster after(options);
    options.outer_after_mixing = false;
    Cluster before(options);
    const Quadratic task(kNodes, kDimension, 1);
    REQUIRE(after.driver.run(5 * kInterval, task).ok());
    REQUIRE(before.driver.run(5 * kInterval, task).ok());
    CHECK(after.driver.bytes_sent(0) == before.driver.bytes_sent(0));
  }
}

}  // namespace sotto::test::outer_after_mixing_test
