// The key test: one algorithm object gives the same bits whoever drives it and whatever carries its
// frames: the lock-step driver, threads, Gloo and ZeroMQ on loopback.
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/base/error.h>
#include <sotto/compress/registry.h>

#include "optim/cluster.h"
#include "support/skip.h"
#include "trainers/nodes.h"

namespace sotto::test::agreement_test {

namespace {

constexpr int kNodes = 4;
constexpr std::size_t kDimension = 150;
/// The dimension of models that are cut: into four buckets, the last of them short.
constexpr std::size_t kCutDimension = 3 * 4096 + 100;
constexpr Round kRounds = 50;

struct Pairing {
  std::string algorithm;
  std::string compressor;
  std::string topology = "ring";
  std::uint32_t buckets = 1;
  std::string rule = "sgd";
};

ClusterOptions cluster_options(const Pairing& pairing) {
  ClusterOptions options;
  options.algorithm = pairing.algorithm;
  options.compressor = pairing.compressor;
  options.topology = pairing.topology;
  options.nodes = kNodes;
  options.dimension = pairing.buckets > 1 ? kCutDimension : kDimension;
  options.buckets = pairing.buckets;
  options.step.rule = pairing.rule;
  options.step.learning_rate = 0.02;
  options.step.momentum = 0.5;
  return options;
}

/// Every algorithm with every compressor whose contract it takes, and with its own default on
/// graphs that change between rounds, where it takes those.
std::vector<Pairing> admissible() {
  std::vector<Pairing> pairings;
  for (const AlgorithmInfo& algorithm : algorithms()) {
    if (algorithm.takes_changing_graphs() && algorithm.graph != GraphNeed::any) {
      for (const std::string topology : {"base:1", "matching:5"}) {
        pairings.push_back(
            {std::string(algorithm.name), std::string(algorithm.default_compressor), topology});
      }
    }
    for (const CompressorInfo& compressor : compressors()) {
      const Pairing pairing{std::string(algorithm.name), std::string(compressor.example)};
      try {
        const Cluster cluster(cluster_options(pairing));
        pairings.push_back(pairing);
      } catch (const Error&) {
        continue;  // refused, as it should be
      }
    }
  }
  return pairings;
}

/// Every algorithm that takes buckets, in some.
std::vector<Pairing> cut() {
  std::vector<Pairing> pairings;
  for (const AlgorithmInfo& algorithm : algorithms()) {
    if (algorithm.takes_buckets()) {
      pairings.push_back(
          {std::string(algorithm.name), std::string(algorithm.default_compressor), "ring", 4});
    }
  }
  return pairings;
}

/// Every algorithm that takes a step rule that follows the model, with one.
std::vector<Pairing> following() {
  std::vector<Pairing> pairings;
  for (const AlgorithmInfo& algorithm : algorithms()) {
    if (algorithm.takes_following_rules()) {
      pairings.push_back({.algorithm = std::string(algorithm.name),
                          .compressor = std::string(algorithm.default_compressor),
                          .rule = "quasi-global"});
    }
  }
  return pairings;
}

void check_transport(const std::string& transport) {
  auto pairings = admissible();
  REQUIRE(pairings.size() >= algorithms().size());
  const auto in_buckets = cut();
  REQUIRE(in_buckets.size() >= 6);
  pairings.insert(pairings.end(), in_buckets.begin(), in_buckets.end());
  const auto with_rule = following();
  REQUIRE(with_rule.size() >= 6);
  pairings.insert(pairings.end(), with_rule.begin(), with_rule.end());
  for (const Pairing& pairing : pairings) {
    CAPTURE(pairing.algorithm);
    CAPTURE(pairing.compressor);
    CAPTURE(pairing.topology);
    CAPTURE(pairing.buckets);
    CAPTURE(pairing.rule);
    Cluster cluster(cluster_options(pairing));
    const Quadratic task(kNodes, cluster.x.front().size(), 3, 0.1);
    auto x = cluster.x;
    REQUIRE(cluster.driver.run(kRounds, task).ok());

    auto options = options_for(kNodes, make_memory_store());
    options.lazy = algorithm_info(pairing.algorithm).eigenvalues_above > -1;
    options.compressor = pairing.compressor;
    options.topology = pairing.topology;
    options.step_rule = cluster_options(pairing).step;
    options.buckets = pairing.buckets;
    choose(options, algorithm_info(pairing.algorithm));
    options.transport = transport;
    const auto statuses = play(kNodes, [&](Rank rank) {
      return train(options, rank, kRounds, task, x[static_cast<std::size_t>(rank)]);
    });
    for (const Status& status : statuses) {
      CAPTURE(status.message());
      CHECK(status.ok());
    }
    CHECK(x == cluster.x);
  }
}

}  // namespace

TEST_CASE("50 rounds over threads equal 50 rounds in lock step, bit for bit") {
  check_transport("inproc");
}

TEST_CASE("50 rounds over Gloo equal 50 rounds in lock step, bit for bit") {
  if (!available("gloo")) {
    SOTTO_SKIP("built without Gloo");
  }
  check_transport("gloo");
}

TEST_CASE("50 rounds over ZeroMQ equal 50 rounds in lock step, bit for bit") {
  if (!available("zmq")) {
    SOTTO_SKIP("built without ZeroMQ");
  }
  check_transport("zmq");
}

}  // namespace sotto::test::agreement_test
