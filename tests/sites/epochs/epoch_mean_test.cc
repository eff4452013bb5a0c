// Means of epochs have the bits of the algorithms that they stand for, and digests of their own.
#include <sotto/sites/epochs/epoch_mean.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/compress/registry.h>

#include "optim/cluster.h"
#include "sites/epochs/epoch_world.h"
#include "support/seed.h"

namespace sotto::test::epoch_mean_test {

using namespace sotto::sites;

namespace {

/// A gradient that a node gives in parts, one in each turn.
struct Partly {
  std::vector<float> gradient{};
  std::vector<Chunk> left{};
  bool begun = false;
};

/// A node's turn with a gradient that comes in parts, cut by `random`; the last turn offers it.
void give(EpochMember& node, Partly& partly, RandomStream& random, EpochTime now) {
  if (!std::exchange(partly.begun, true)) {
    partly.left = random_parts(partly.gradient.size(), random);
  }
  if (partly.left.empty()) {
    REQUIRE(node.offer(now).ok());
    partly = {};
    return;
  }
  const Chunk part = partly.left.back();
  partly.left.pop_back();
  const auto values = part.of(std::span<const float>(partly.gradient));
  REQUIRE(node.gradient_part(part.offset, values, now).ok());
}

/// Models of nodes that nothing happens to, after `steps`. With `random` gradients come in parts.
std::vector<std::vector<float>> in_epochs(const ClusterOptions& options, Round steps,
                                          const std::vector<float>& start,
                                          const GradientFunction& gradient,
                                          RandomStream* random = nullptr) {
  std::vector<Partly> partly(options.nodes);
  std::vector<std::vector<float>> x(options.nodes, start);
  std::vector<std::unique_ptr<EpochMember>> nodes;
  std::vector<std::string> names;
  for (std::size_t k = 0; k < options.nodes; ++k) {
    names.push_back(std::string(1, static_cast<char>('a' + k)));
  }
  std::vector<EpochPeer> peers;
  for (std::size_t k = 0; k < options.nodes; ++k) {
    peers.push_back({names[k], k + 1, false});
  }
  for (std::size_t k = 0; k < options.nodes; ++k) {
    nodes.push_back(std::make_unique<EpochMember>(
        EpochSetup{.name = names[k],
                   .incarnation = k + 1,
                   .founders = names,
                   .parameters = x[k],
                   .layout = {},
                   .step_rule = make_step_rule(options.step),
                   .compressor = make_compressor(
                       options.compressor.empty() ? "none" : options.compressor, ContractKind::any),
                   .seed = options.seed},
        EpochTime(0)));
    nodes.back()->set_peers(peers);
  }
  for (EpochTime now{0}; now < EpochTime(200'000); now += EpochTime(100)) {
    bool done = true;
    for (std::size_t k = 0; k < nodes.size(); ++k) {
      nodes[k]->tick(now);
      if (nodes[k]->wants_gradient() && nodes[k]->step() < steps) {
        std::vector<float>& g = partly[k].gradient;
        if (!partly[k].begun) {
          g.resize(options.dimension);
          gradient(static_cast<Rank>(k), nodes[k]->step(), x[k], g);
        }
        if (random != nullptr) {
          give(*nodes[k], partly[k], *random, now);
        } else {
          REQUIRE(nodes[k]->offer(g, now).ok());
        }
      }
      for (const EpochParcel& parcel : nodes[k]->released()) {
        REQUIRE(nodes[parcel.incarnation - 1]->receive(names[k], k + 1, parcel.bytes(), now).ok());
      }
      done = done && nodes[k]->step() == steps;
    }
    if (done) {
      return x;
    }
  }
  FAIL("the nodes take no steps");
  return x;
}

/// Models of nodes in epochs, and those of a run of as many fixed nodes, have the same bits.
void check_bits(std::size_t nodes, std::size_t dimension, const std::string& rule,
                const std::string& compressor) {
  CAPTURE(nodes);
  CAPTURE(dimension);
  CAPTURE(rule);
  CAPTURE(compressor);
  const ClusterOptions options{.algorithm = compressor.empty() ? "allreduce" : "qmean",
                               .compressor = compressor,
                               .nodes = nodes,
                               .dimension = dimension,
                               .step = {.rule = rule, .learning_rate = 0.05},
                               .seed = 11,
                               .allow_contract_violation = true};
  const Quadratic task(nodes, dimension, 3, 0.2);
  const GradientFunction gradient = task;
  Cluster cluster(options);
  const std::vector<float> start = cluster.x[0];
  REQUIRE(cluster.driver.run(12, gradient).ok());
  const std::uint64_t seed = drawn_seed();
  CAPTURE(seed);
  RandomStream random({.seed = seed, .purpose = Purpose::faults});
  for (RandomStream* parts : {static_cast<RandomStream*>(nullptr), &random}) {
    CAPTURE(parts != nullptr);
    const auto x = in_epochs(options, 12, start, gradient, parts);
    for (std::size_t k = 0; k < nodes; ++k) {
      CHECK(same_bits(x[k], cluster.x[k]));
    }
  }
}

}  // namespace

TEST_CASE("epochs: where nothing fails the models are those of allreduce and qmean, bit for bit") {
  for (const std::size_t nodes : {1U, 2U, 3U, 5U, 8U}) {
    for (const char* rule : {"sgd", "adam", "adamw"}) {
      for (const char* compressor : {"", "sign", "topk:0.3", "quant:4,rounding=stochastic"}) {
        check_bits(nodes, 37, rule, compressor);
      }
    }
  }
  for (const char* compressor : {"", "quant:4,rounding=stochastic"}) {
    check_bits(2, 20'011, "sgd", compressor);  // chunks that are gone over in several pieces
  }
}

TEST_CASE("epochs: the digest of a mean tells steps, members, bytes and learning rates apart") {
  const StepMean mean{3, {{{0, 1}, {std::byte{1}}}, {{0, 1}, {std::byte{2}}}}};
  const EpochDigest digest = digest_of(mean, 0.1);
  CHECK(digest == digest_of(mean, 0.1));
  CHECK(digest != digest_of(mean, 0.2));
  CHECK(digest != digest_of(mean, 0.1, 7));
  StepMean other = mean;
  other.step = 4;
  CHECK(digest != digest_of(other, 0.1));
  other = mean;
  other.parts[1].who = {1};
  CHECK(digest != digest_of(other, 0.1));
  other = mean;
  other.parts[0].encoding = {std::byte{3}};
  CHECK(digest != digest_of(other, 0.1));
}

TEST_CASE("epochs: no two runs that one process founds have one number") {
  std::vector<float> x(4);
  std::vector<History> runs;
  for (std::uint32_t stay = 0; stay < 3; ++stay) {
    EpochMember node({.name = "a",
                      .incarnation = 1,
                      .stay = stay,
                      .founders = {"a"},
                      .parameters = x,
                      .layout = {},
                      .step_rule = make_step_rule({}),
                      .compressor = make_compressor("none", ContractKind::any)},
                     EpochTime(0));
    for (EpochTime now{0}; !node.wants_gradient(); now += EpochTime(100)) {
      REQUIRE(now < EpochTime(60'000));
      node.tick(now);
    }
    CHECK(std::ranges::count(runs, node.history()) == 0);
    runs.push_back(node.history());
  }
}

}  // namespace sotto::test::epoch_mean_test
