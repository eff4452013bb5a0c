// Tensors of one node each, beside those that all nodes have.
#include <sotto/optim/wrappers/own_tensors.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/base/bytes.h>
#include <sotto/base/philox.h>

#include "optim/cluster.h"

namespace sotto::test::own_tensors_test {

namespace {

constexpr std::uint64_t kSeed = 4'117;
constexpr std::size_t kNodes = 3;

/// a[5], then w0[2,2] and w1[2,2] of nodes 0 and 1, b[3], and w2[2,2] of node 2.
ParameterLayout layout() {
  ParameterLayout made;
  append_block(made, "a", {5});
  append_block(made, "w0", {2, 2});
  append_block(made, "w1", {2, 2});
  append_block(made, "b", {3});
  append_block(made, "w2", {2, 2});
  return made;
}

SteppedTensors stepped(std::size_t rank) {
  const std::vector<Chunk> own = {{5, 4}, {9, 4}, {16, 4}};
  return {.common = {{0, 5}, {13, 3}}, .own = {own[rank]}};
}

/// The nodes' gradients, some of whose elements are other nodes' tensors.
void gradient_of(Rank rank, Round round, std::span<float> g) {
  RandomStream stream({.seed = kSeed, .rank = rank, .round = round, .purpose = Purpose::test});
  for (float& value : g) {
    value = static_cast<float>(stream.normal());
  }
}

struct Nodes {
  Nodes(const std::string& algorithm, const StepRuleOptions& rule,
        Delivery delivery = Delivery::eager)
      : driver(delivery), x(kNodes, std::vector<float>(dimension_of(layout()))) {
    ClusterOptions options{.algorithm = algorithm, .nodes = kNodes, .step = rule};
    options.layout = layout();
    for (std::size_t rank = 0; rank < kNodes; ++rank) {
      RandomStream stream({.seed = kSeed, .purpose = Purpose::initialize});
      for (float& value : x[rank]) {
        value = static_cast<float>(stream.normal());
      }
      driver.add(std::make_unique<OwnTensors>(
          spec_of(options), node_setup(options, rank, x[rank], cluster_topology(options)),
          stepped(rank), make_step_rule(rule), nullptr));
    }
  }
  void run(Round rounds) {
    const Status status =
        driver.run(rounds, [](Rank rank, Round round, std::span<const float>, std::span<float> g) {
          gradient_of(rank, round, g);
        });
    REQUIRE_MESSAGE(status.ok(), status.message());
  }

  LockstepDriver driver;
  std::vector<std::vector<float>> x;
};

std::vector<float> part(std::span<const float> x, const std::vector<Chunk>& chunks) {
  std::vector<float> values;
  for (const Chunk& chunk : chunks) {
    values.insert(values.end(), x.begin() + static_cast<std::ptrdiff_t>(chunk.offset),
                  x.begin() + static_cast<std::ptrdiff_t>(chunk.offset + chunk.size));
  }
  return values;
}

}  // namespace

TEST_CASE("common tensors are a model by themselves, to the bit, whatever lies between them") {
  CAPTURE(kSeed);
  for (const std::string algorithm : {"allreduce", "qmean", "sharded", "ef21", "onebit-adam"}) {
    for (const Delivery delivery : {Delivery::eager, Delivery::late}) {
      CAPTURE(algorithm);
      const StepRuleOptions rule{.rule = algorithm == "onebit-adam" ? "adam" : "sgd",
                                 .learning_rate = 0.05};
      Nodes nodes(algorithm, rule, delivery);
      ClusterOptions options{.algorithm = algorithm,
                             .nodes = kNodes,
                             .dimension = 8,
                             .step = rule,
                             .delivery = delivery};
      options.layout = layout_of_parts(layout(), stepped(0).common);
      Cluster plain(options);
      for (std::size_t rank = 0; rank < kNodes; ++rank) {
        const auto start = part(nodes.x[rank], stepped(rank).common);
        std::ranges::copy(start, plain.x[rank].begin());
      }
      nodes.run(6);
      const Status status = plain.driver.run(
          6, [](Rank rank, Round round, std::span<const float>, std::span<float> g) {
            std::vector<float> whole(dimension_of(layout()));
            gradient_of(rank, round, whole);
            std::ranges::copy(part(whole, stepped(0).common), g.begin());
          });
      REQUIRE_MESSAGE(status.ok(), status.message());
      for (std::size_t rank = 0; rank < kNodes; ++rank) {
        CHECK(same_bits(part(nodes.x[rank], stepped(rank).common), plain.x[rank]));
        CHECK(same_bits(nodes.driver.node(rank).parameters(), nodes.x[rank]));
      }
      CHECK(nodes.driver.bytes_sent(0) == plain.driver.bytes_sent(0));
    }
  }
}

TEST_CASE("own tensors take the step rule's steps at their owner, and stay as they are elsewhere") {
  CAPTURE(kSeed);
  constexpr float kRate = 0.1F;
  constexpr float kMomentum = 0.9F;
  Nodes nodes("qmean", {.learning_rate = 0.1, .momentum = 0.9});
  const std::vector<float> start = nodes.x[0];
  nodes.run(4);
  for (std::size_t rank = 0; rank < kNodes; ++rank) {
    std::vector<float> due = start;
    std::vector<float> velocity(due.size());
    const Chunk own = stepped(rank).own.front();
    for (Round round = 0; round < 4; ++round) {
      std::vector<float> g(due.size());
      gradient_of(static_cast<Rank>(rank), round, g);
      for (std::size_t k = own.offset; k < own.offset + own.size; ++k) {
        velocity[k] = kMomentum * velocity[k] + g[k];
        due[k] -= kRate * velocity[k];
      }
    }
    for (std::size_t other = 0; other < kNodes; ++other) {
      const auto& tensors = stepped(other).own;
      const auto found = part(nodes.x[rank], tensors);
      const auto expected = part(due, tensors);
      for (std::size_t k = 0; k < found.size(); ++k) {
        CHECK(found[k] == doctest::Approx(expected[k]).epsilon(1e-6));
      }
    }
  }
}

TEST_CASE("what was saved between rounds goes on as if it had not stopped") {
  CAPTURE(kSeed);
  const StepRuleOptions rule{.rule = "adam", .learning_rate = 0.02};
  Nodes whole("qmean", rule);
  whole.run(3);
  Nodes resumed("qmean", rule);
  for (std::size_t rank = 0; rank < kNodes; ++rank) {
    ByteBuffer saved;
    whole.driver.node(rank).save(saved);
    resumed.x[rank] = whole.x[rank];
    ByteReader in(saved.bytes());
    const Status status = resumed.driver.node(rank).load(in);
    REQUIRE_MESSAGE(status.ok(), status.message());
    CHECK(in.finished());
    CHECK(resumed.driver.node(rank).round() == 3);
  }
  whole.run(3);
  resumed.run(3);
  for (std::size_t rank = 0; rank < kNodes; ++rank) {
    CHECK(same_bits(resumed.x[rank], whole.x[rank]));
  }
}

TEST_CASE("a gradient that is not finite leaves both parts as they were") {
  for (const std::size_t bad : {std::size_t{1}, std::size_t{6}}) {
    CAPTURE(bad);
    Nodes nodes("allreduce", {.learning_rate = 0.1});
    const std::vector<float> start = nodes.x[0];
    Algorithm& node = nodes.driver.node(0);
    node.begin_round();
    std::vector<float> g(start.size(), 1.0F);
    g[bad] = std::nanf("");
    CHECK(node.take_gradient(g).fault() == Fault::non_finite);
    CHECK(same_bits(nodes.x[0], start));
    g[bad] = 1;
    CHECK(node.take_gradient(g).ok());
  }
}

}  // namespace sotto::test::own_tensors_test
