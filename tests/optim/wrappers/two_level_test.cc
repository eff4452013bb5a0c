// Groups of nodes that train one model, and any algorithm between them.
#include <sotto/optim/wrappers/two_level.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/base/error.h>
#include <sotto/base/philox.h>
#include <sotto/topology/node_groups.h>

#include "optim/cluster.h"
#include "topology/flat_topology.h"

namespace sotto::test::two_level_test {

namespace {

using Groups = std::vector<std::vector<Rank>>;

/// Nodes 0 … groups × size − 1, dealt out at random.
Groups dealt(std::size_t groups, std::size_t size, RandomStream& stream) {
  std::vector<Rank> ranks(groups * size);
  for (std::size_t k = 0; k < ranks.size(); ++k) {
    ranks[k] = static_cast<Rank>(k);
  }
  for (std::size_t k = ranks.size(); k > 1; --k) {
    std::swap(ranks[k - 1], ranks[stream.below(k)]);
  }
  Groups made(groups);
  for (std::size_t k = 0; k < ranks.size(); ++k) {
    made[k % groups].push_back(ranks[k]);
  }
  return made;
}

double largest_difference(std::span<const float> a, std::span<const float> b) {
  double most = 0;
  for (std::size_t k = 0; k < a.size(); ++k) {
    most = std::max(most, std::abs(static_cast<double>(a[k]) - static_cast<double>(b[k])));
  }
  return most;
}

}  // namespace

TEST_CASE(
    "the members of a group hold one model to the bit, in every algorithm that takes groups") {
  constexpr std::uint64_t kSeed = 77;
  RandomStream stream({.seed = kSeed});
  int taken = 0;
  for (const AlgorithmInfo& info : algorithms()) {
    for (const Delivery delivery : {Delivery::eager, Delivery::late}) {
      const std::size_t size = 2 + stream.below(3);
      const std::size_t count = 2 + stream.below(3);
      ClusterOptions options{.algorithm = std::string(info.name),
                             .nodes = size * count,
                             .groups = dealt(count, size, stream),
                             .dimension = 1 + stream.below(70),
                             .step = {.learning_rate = 0.05},
                             .delivery = delivery};
      CAPTURE(kSeed);
      CAPTURE(options.algorithm);
      CAPTURE(NodeGroups(options.groups).text());
      CAPTURE(options.dimension);
      std::unique_ptr<Cluster> cluster;
      try {
        cluster = std::make_unique<Cluster>(options);
      } catch (const Error& error) {
        CHECK(std::string(error.what()).find("in groups") != std::string::npos);
        continue;
      }
      ++taken;
      const Quadratic problem(options.nodes, options.dimension, kSeed);
      const Status status = cluster->driver.run(12, problem);
      REQUIRE_MESSAGE(status.ok(), status.message());
      for (const auto& group : options.groups) {
        for (const Rank rank : group) {
          CHECK(same_bits(cluster->x[static_cast<std::size_t>(rank)],
                          cluster->x[static_cast<std::size_t>(group.front())]));
        }
      }
    }
  }
  CHECK(taken >= 24);
}

TEST_CASE("members whose pairs come in unlike orders do not wait for each other in a circle") {
  constexpr std::uint64_t kSeed = 60'017;
  RandomStream stream({.seed = kSeed});
  for (int trial = 0; trial < 60; ++trial) {
    const std::size_t size = 2 + stream.below(3);
    const std::size_t count = 2 + stream.below(4);
    ClusterOptions options{.algorithm = "adpsgd",
                           .topology = trial % 2 == 0 ? "ring" : "complete",
                           .nodes = size * count,
                           .groups = dealt(count, size, stream),
                           .dimension = 1 + stream.below(20),
                           .step = {.learning_rate = 0.05},
                           .delivery = trial % 3 == 0 ? Delivery::eager : Delivery::late};
    CAPTURE(kSeed);
    CAPTURE(trial);
    CAPTURE(NodeGroups(options.groups).text());
    Cluster cluster(options);
    const Status status =
        cluster.driver.run(12, Quadratic(options.nodes, options.dimension, kSeed));
    REQUIRE_MESSAGE(status.ok(), status.message());
  }
}

TEST_CASE("groups mix as single nodes do on the flat graph") {
  constexpr std::uint64_t kSeed = 5;
  RandomStream stream({.seed = kSeed});
  for (int trial = 0; trial < 12; ++trial) {
    const std::size_t size = 1 + stream.below(4);
    const std::size_t count = 2 + stream.below(4);
    // DeepSqueeze takes its step before it mixes, so that members stay equal on the flat graph too.
    ClusterOptions options{.algorithm = "deepsqueeze:eta=1",
                           .compressor = "none",
                           .topology = trial % 2 == 0 ? "ring" : "complete",
                           .nodes = size * count,
                           .groups = dealt(count, size, stream),
                           .dimension = 1 + stream.below(40),
                           .step = {.learning_rate = 0.1}};
    CAPTURE(kSeed);
    CAPTURE(trial);
    Cluster levels(options);
    const auto flat = std::make_shared<const Topology>(
        flat_topology(*cluster_topology(options), NodeGroups(options.groups)));
    options.groups = {};
    Cluster single(options, flat);
    const Quadratic problem(options.nodes, options.dimension, kSeed + 1);
    REQUIRE(levels.driver.run(20, problem).ok());
    REQUIRE(single.driver.run(20, problem).ok());
    for (std::size_t rank = 0; rank < options.nodes; ++rank) {
      CHECK(largest_difference(levels.x[rank], single.x[rank]) < 2e-5);
    }
  }
}

TEST_CASE("groups of one node are the algorithm itself, to the bit") {
  for (const char* algorithm : {"dpsgd", "dcd", "choco", "allreduce", "pushsum"}) {
    CAPTURE(algorithm);
    ClusterOptions options{.algorithm = algorithm,
                           .nodes = 5,
                           .dimension = 33,
                           .step = {.learning_rate = 0.1, .momentum = 0.5}};
    Cluster single(options);
    options.groups = {{0}, {1}, {2}, {3}, {4}};
    Cluster levels(options);
    const Quadratic problem(options.nodes, options.dimension, 3);
    REQUIRE(single.driver.run(9, problem).ok());
    REQUIRE(levels.driver.run(9, problem).ok());
    for (std::size_t rank = 0; rank < options.nodes; ++rank) {
      CHECK(same_bits(levels.x[rank], single.x[rank]));
    }
    CHECK(levels.driver.traffic().size() == single.driver.traffic().size());
  }
}

TEST_CASE("one group of all nodes takes the mean of all gradients, also with local steps") {
  ClusterOptions options{.algorithm = "dpsgd",
                         .nodes = 6,
                         .groups = {{0, 1, 2, 3, 4, 5}},
                         .dimension = 20,
                         .step = {.learning_rate = 0.1}};
  Cluster levels(options);
  options.communication_interval = 3;
  Cluster local(options);
  options.communication_interval = 1;
  options.groups = {};
  options.algorithm = "allreduce";
  Cluster all(options);
  const Quadratic problem(options.nodes, options.dimension, 8);
  for (Cluster* cluster : {&levels, &local, &all}) {
    REQUIRE(cluster->driver.run(12, problem).ok());
  }
  CHECK(largest_difference(levels.x[0], all.x[0]) < 1e-6);
  CHECK(largest_difference(local.x[3], all.x[3]) < 1e-6);
}

TEST_CASE("bytes are those of the chunk between groups, and twice the rest of the model within") {
  const std::size_t dimension = 1000;
  ClusterOptions options{.algorithm = "choco",
                         .compressor = "quant:8",
                         .nodes = 8,
                         .groups = {{0, 1, 2, 3}, {4, 5, 6, 7}},
                         .dimension = dimension};
  Cluster cluster(options);
  const Quadratic problem(options.nodes, options.dimension, 8);
  REQUIRE(cluster.driver.run(10, problem).ok());
  constexpr std::uint64_t kHeader = 64;
  const std::uint64_t within = 10 * 2 * (kHeader + 250 * 4);
  std::uint64_t between = 0;
  for (const auto& [edge, traffic] : cluster.driver.traffic()) {
    const bool same = edge.first / 4 == edge.second / 4;
    if (same) {
      CHECK(traffic.bytes == within);
    } else {
      CHECK(edge.first % 4 == edge.second % 4);  // members of one chunk
      between += traffic.bytes;
    }
  }
  const std::size_t encoding =
      make_compressor("quant:8", ContractKind::contraction)->max_bytes(250);
  CHECK(between <= 10 * 8 * (kHeader + encoding));
  CHECK(between > 0);
}

TEST_CASE("a run that was saved in groups goes on as one that was not stopped") {
  ClusterOptions options{.algorithm = "choco",
                         .nodes = 6,
                         .groups = {{0, 3}, {1, 4}, {2, 5}},
                         .dimension = 41,
                         .step = {.learning_rate = 0.1, .momentum = 0.9},
                         .communication_interval = 2};
  const Quadratic problem(options.nodes, options.dimension, 4, 0.1);
  Cluster whole(options);
  REQUIRE(whole.driver.run(12, problem).ok());
  Cluster first(options);
  REQUIRE(first.driver.run(7, problem).ok());
  Cluster second(options);
  for (std::size_t rank = 0; rank < options.nodes; ++rank) {
    ByteBuffer saved;
    first.driver.node(rank).save(saved);
    second.x[rank] = first.x[rank];
    ByteReader in(saved.bytes());
    REQUIRE(second.driver.node(rank).load(in).ok());
    CHECK(in.finished());
  }
  REQUIRE(second.driver.run(5, problem).ok());
  for (std::size_t rank = 0; rank < options.nodes; ++rank) {
    CHECK(same_bits(second.x[rank], whole.x[rank]));
  }
}

TEST_CASE("a state whose rounds inside and between groups differ is refused") {
  const ClusterOptions options{
      .algorithm = "allreduce", .nodes = 4, .groups = {{0, 1}, {2, 3}}, .dimension = 10};
  const Quadratic problem(options.nodes, options.dimension, 4, 0.1);
  Cluster first(options);
  REQUIRE(first.driver.run(1, problem).ok());
  ByteBuffer early;
  first.driver.node(0).save(early);
  REQUIRE(first.driver.run(1, problem).ok());
  ByteBuffer late;
  first.driver.node(0).save(late);
  // The first difference is the node's own round.
  REQUIRE(early.bytes().size() == late.bytes().size());
  std::vector<std::byte> mixed(late.bytes().begin(), late.bytes().end());
  const auto at = std::ranges::mismatch(early.bytes(), late.bytes()).in1 - early.bytes().begin();
  mixed[static_cast<std::size_t>(at)] = early.bytes()[static_cast<std::size_t>(at)];
  Cluster second(options);
  ByteReader in(mixed);
  const Status status = second.driver.node(0).load(in);
  CHECK(status.fault() == Fault::malformed);
  CHECK_MESSAGE(status.message().find("between groups") != std::string::npos, status.message());
}

TEST_CASE("what cannot be done in groups is refused with what would do") {
  const auto refusal = [](const ClusterOptions& options) -> std::string {
    try {
      const Cluster cluster(options);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  ClusterOptions options{.algorithm = "dcd", .nodes = 4, .groups = {{0, 1}, {2, 3}}};
  CHECK(refusal(options).empty());
  options.step = {.rule = "lars"};
  CHECK(refusal(options).find("step_rule: 'lars' is refused: in groups") == 0);
  options.step = {};
  options.compressor = "quant:4; 1d=none";
  CHECK(refusal(options).find("not along tensors") != std::string::npos);
  for (const char* spec : {"lowrank:1", "dct/topk:0.1"}) {
    options.compressor = spec;
    CHECK(refusal(options).find("in groups each node sends a chunk") != std::string::npos);
  }
  options.compressor = "";
  for (const char* algorithm : {"powersgd", "dion", "powergossip", "demo"}) {
    options.algorithm = algorithm;
    CAPTURE(algorithm);
    CHECK(refusal(options).find("in groups each node sends a chunk") != std::string::npos);
  }
  options.algorithm = "dcd";
  options.groups = {{0, 1}, {2, 3}, {4, 5}};
  CHECK(refusal(options).find("groups: they have 6 nodes, and the job has 4") == 0);
}

TEST_CASE("a gradient that is not finite leaves the round open for another one") {
  ClusterOptions options{.algorithm = "dpsgd", .nodes = 2, .groups = {{0, 1}}, .dimension = 4};
  Cluster cluster(options);
  auto& node = cluster.driver.node(0);
  node.begin_round();
  const std::vector<float> bad = {0, NAN, 0, 0};
  const Status status = node.take_gradient(bad);
  CHECK(status.fault() == Fault::non_finite);
  CHECK(node.accepts_gradient());
  CHECK(node.take_gradient(std::vector<float>(4)).ok());
}

TEST_CASE("weights are refused where groups would turn them into other learning rates") {
  const auto refused = [](const std::string& algorithm, const auto& change) {
    ClusterOptions options{.algorithm = algorithm, .nodes = 4, .groups = {{0, 1}, {2, 3}}};
    const auto topology = cluster_topology(options);
    std::vector<float> x(options.dimension);
    AlgorithmSetup setup = node_setup(options, 0, x, topology);
    setup.weighted = true;
    change(setup);
    try {
      (void)make_algorithm(spec_of(options), std::move(setup));
    } catch (const Error& error) {
      return error.field() == "weight";
    }
    return false;
  };
  const auto nothing = [](AlgorithmSetup&) {};
  CHECK(refused("dpsgd", nothing));
  CHECK_FALSE(refused("allreduce", nothing));
  CHECK(refused("allreduce", [](AlgorithmSetup& setup) { setup.communication_interval = 2; }));
  CHECK(refused("allreduce", [](AlgorithmSetup& setup) {
    setup.outer_step_rule = make_step_rule({.learning_rate = 0.7});
  }));
  CHECK(refused("allreduce", [](AlgorithmSetup& setup) {
    setup.groups =
        std::make_shared<const NodeGroups>(std::vector<std::vector<Rank>>{{0}, {1}, {2}, {3}});
    setup.communication_interval = 4;
  }));
}

TEST_CASE(
    "a member with another learning rate ends the round, a group with another one is told of") {
  ClusterOptions options{.algorithm = "dpsgd", .nodes = 4, .groups = {{0, 1}, {2, 3}}};
  const Quadratic problem(options.nodes, options.dimension, 4);
  const auto run_with = [&](std::vector<Rank> changed) {
    auto terms = std::vector<std::shared_ptr<RoundTerms>>(4);
    const auto topology = cluster_topology(options);
    std::vector<std::vector<float>> x(4, std::vector<float>(options.dimension));
    LockstepDriver driver;
    for (Rank rank = 0; rank < 4; ++rank) {
      const auto node = static_cast<std::size_t>(rank);
      AlgorithmSetup setup = node_setup(options, node, x[node], topology);
      setup.terms = terms[node] = std::make_shared<RoundTerms>();
      driver.add(make_algorithm(spec_of(options), std::move(setup)));
      if (std::ranges::find(changed, rank) != changed.end()) {
        terms[node]->stamp = stamp_of_rate(0.5);
      }
    }
    return std::pair(driver.run(3, problem), terms);
  };
  CHECK(run_with({3}).first.fault() == Fault::unexpected);
  const auto [status, terms] = run_with({2, 3});
  CHECK(status.ok());
  REQUIRE(terms[0]->news.size() == 1);
  CHECK(terms[0]->news[0].peer == 2);  // the node, not the group
  REQUIRE(terms[1]->news.size() == 1);
  CHECK(terms[1]->news[0].peer == 3);
  CHECK(terms[0]->differing_frames == 3);
}

}  // namespace sotto::test::two_level_test
