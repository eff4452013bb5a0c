// Decentralized 1-bit Adam: a common variance, and a mean that follows Adam with it.
#include <sotto/optim/algorithms/gossip_adam.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/base/frame.h>

#include "optim/cluster.h"
#include "optim/other_frames.h"

namespace sotto::test::gossip_adam_test {

namespace {

constexpr std::size_t kDimension = 33;

/// Gradients that depend on the node and the round, not on x; parameter 5 never has one.
void noisy(Rank rank, Round round, std::span<const float> /*x*/, std::span<float> g) {
  RandomStream stream({.seed = 3, .rank = rank, .round = round, .purpose = Purpose::test});
  for (std::size_t k = 0; k < g.size(); ++k) {
    const double size = 1 + static_cast<double>(rank);
    g[k] =
        k == 5
            ? 0
            : static_cast<float>(0.3 * std::sin(static_cast<double>(k)) + size * stream.normal());
  }
}

ClusterOptions options(const std::string& compressor) {
  return {.algorithm = "onebit-adam-gossip",
          .compressor = compressor,
          .dimension = kDimension,
          .step = {.rule = "adam", .learning_rate = 1e-3},
          .freeze_step = 10};
}

}  // namespace

TEST_CASE("after the freeze and the rounds of agreement all nodes hold the largest variance") {
  for (const std::string graph : {"ring", "complete", "star", "hypercube", "torus:2x4"}) {
    CAPTURE(graph);
    auto chosen = options("sign");
    chosen.topology = graph;
    Cluster cluster(chosen);
    REQUIRE(cluster.driver.run(10, noisy).ok());
    std::vector<float> largest(kDimension);
    for (std::size_t i = 0; i < 8; ++i) {
      const auto v = cluster.node<GossipAdam>(i).variance();
      for (std::size_t k = 0; k < kDimension; ++k) {
        largest[k] = std::max(largest[k], v[k]);
      }
    }
    int agreement = 0;
    while (!cluster.node<GossipAdam>(0).squeezing()) {
      REQUIRE(cluster.driver.run(1, noisy).ok());
      ++agreement;
    }
    CHECK(agreement <= 7);
    REQUIRE(cluster.driver.run(30, noisy).ok());
    for (std::size_t i = 0; i < 8; ++i) {
      CHECK(same_bits(cluster.node<GossipAdam>(i).variance(), largest));
    }
  }
}

TEST_CASE("the mean model follows Adam with the common variance, whatever is compressed") {
  for (const CompressorInfo& family : compressors()) {
    const auto compressor = make_compressor(family.example, ContractKind::contraction);
    if (!compressor->contract(kDimension).meets(ContractKind::contraction)) {
      continue;
    }
    CAPTURE(family.name);
    Cluster cluster(options(compressor->spec()));
    Round t = 0;
    while (!cluster.node<GossipAdam>(0).squeezing()) {
      REQUIRE(cluster.driver.run(1, noisy).ok());
      ++t;
    }
    auto x = cluster.mean();
    std::vector<double> m(kDimension);
    for (std::size_t i = 0; i < 8; ++i) {
      for (std::size_t k = 0; k < kDimension; ++k) {
        m[k] += static_cast<double>(cluster.node<GossipAdam>(i).momentum()[k]) / 8;
      }
    }
    const auto v = cluster.node<GossipAdam>(0).variance();
    const double correction = 1 - std::pow(0.999, 10);
    std::vector<float> g(kDimension);
    for (const Round end = t + 150; t < end; ++t) {
      for (double& value : m) {
        value *= 0.9;
      }
      for (Rank i = 0; i < 8; ++i) {
        noisy(i, t, {}, g);
        for (std::size_t k = 0; k < kDimension; ++k) {
          m[k] += 0.1 * static_cast<double>(g[k]) / 8;
        }
      }
      for (std::size_t k = 0; k < kDimension; ++k) {
        const double root = std::sqrt(static_cast<double>(v[k]) / correction) + 1e-8;
        x[k] -= 1e-3 * m[k] / (1 - std::pow(0.9, static_cast<double>(t + 1))) / root;
      }
      const Status status = cluster.driver.run(1, noisy);
      CAPTURE(status.message());
      REQUIRE(status.ok());
      const auto mean = cluster.mean();
      for (std::size_t k = 0; k < kDimension; ++k) {
        REQUIRE(std::fabs(mean[k] - x[k]) < 1e-5);
      }
    }
  }
}

TEST_CASE("decentralized 1-bit Adam: a parameter that never has a gradient moves on no node") {
  Cluster cluster(options("sign"));
  const auto start = cluster.x[0];
  REQUIRE(cluster.driver.run(200, noisy).ok());
  // The consensus still moves what compression made different; the mean stays.
  CHECK(std::fabs(cluster.mean()[5] - static_cast<double>(start[5])) < 1e-5);
  CHECK(std::fabs(cluster.mean()[8] - static_cast<double>(start[8])) > 1e-4);
}

TEST_CASE("decentralized 1-bit Adam keeps near Adam, and its nodes near each other") {
  const Quadratic task(8, 64, 11, 0.5);
  const auto run = [&](const std::string& algorithm, Round freeze) {
    Cluster cluster({.algorithm = algorithm,
                     .step = {.rule = "adam", .learning_rate = 0.01},
                     .freeze_step = freeze});
    const Status status = cluster.driver.run(1500, task);
    CAPTURE(status.message());
    REQUIRE(status.ok());
    double apart = 0;
    const auto mean = cluster.mean();
    for (const auto& x : cluster.x) {
      for (std::size_t k = 0; k < x.size(); ++k) {
        apart = std::fmax(apart, std::fabs(static_cast<double>(x[k]) - mean[k]));
      }
    }
    CAPTURE(algorithm);
    CHECK(apart < 0.5);
    return task.excess(mean);
  };
  const double adam = run("apmsqueeze", 1501);
  CAPTURE(adam);
  CHECK(run("onebit-adam-gossip", 200) < 3 * adam + 0.01);
}

TEST_CASE("a frame with a negative variance is refused") {
  const ClusterOptions chosen{.algorithm = "onebit-adam-gossip", .nodes = 2, .dimension = 1};
  std::vector<float> x = {1};
  const auto graph = cluster_topology(chosen);
  const auto node = make_algorithm(spec_of(chosen), node_setup(chosen, 0, x, graph));
  std::vector<float> y = {1};
  const auto peer = make_algorithm(spec_of(chosen), node_setup(chosen, 1, y, graph));
  Exchange mine;
  Exchange theirs;
  node->begin_round();
  peer->begin_round();
  REQUIRE(*node->next_exchange(mine));
  REQUIRE(*peer->next_exchange(theirs));
  // The peer's frame, sealed anew around a variance of −1.
  const auto frame = theirs.sends.at(0).frame;
  const auto parsed = parse_frame(frame);
  REQUIRE(parsed.ok());
  std::vector<std::byte> forged(frame.begin(), frame.end());
  const float negative = -1;
  std::memcpy(forged.data() + forged.size() - sizeof(float), &negative, sizeof(float));
  seal_frame((*parsed).header, forged);
  const Status done = node->complete(with_frame(mine, forged));
  CHECK_FALSE(done.ok());
  CHECK(done.message().find("negative variance") != std::string::npos);
  // The right frame still does.
  Bytes right = copy_of(frame);
  CHECK(node->complete(with_frame(mine, right)).ok());
}

}  // namespace sotto::test::gossip_adam_test
