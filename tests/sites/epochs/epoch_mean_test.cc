// Means of epochs have the bits of the algorithms that they stand for, and nothing is dropped.
#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/base/error.h>
#include <sotto/base/parameter_layout.h>
#include <sotto/compress/registry.h>
#include <sotto/sites/epochs/epoch_mean.h>

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

TEST_CASE("epochs: what compression withholds is not dropped when an epoch ends") {
  // With errors e and ē: Σ c̄ + (1/n) Σ e + ē = Σ of the mean gradients, while
  // n nodes take part, also across the end of an epoch.
  constexpr std::size_t kDimension = 11;
  RandomStream random({.seed = 9});
  std::vector<EpochReducer> nodes;
  for (int k = 0; k < 3; ++k) {
    nodes.emplace_back(kDimension, make_compressor("topk:0.3", ContractKind::any), 1);
  }
  std::vector<double> given(kDimension);
  std::vector<double> received(kDimension);
  const auto steps = [&](Epoch epoch, Round first, Round count, double factor) {
    const std::size_t n = nodes.size();
    for (Round step = first; step < first + count; ++step) {
      std::vector<EpochPlace> places;
      for (std::size_t k = 0; k < n; ++k) {
        places.push_back({epoch, step, k, n});
        std::vector<float> g(kDimension);
        for (std::size_t j = 0; j < kDimension; ++j) {
          g[j] = static_cast<float>(factor * random.normal());
          given[j] += static_cast<double>(g[j]) / static_cast<double>(n);
        }
        for (std::size_t chunk = 0; chunk < n; ++chunk) {  // in another order at each node
          REQUIRE(nodes[k].encode(places[k], (k + chunk) % n, g).ok());
        }
      }
      StepMean mean{.step = step, .parts = {}};
      for (std::size_t owner = 0; owner < n; ++owner) {
        std::map<std::uint16_t, SharedBytes> chunks;
        for (std::size_t k = 0; k < n; ++k) {
          chunks[static_cast<std::uint16_t>(k)] = nodes[k].encoding(owner);
        }
        auto part = nodes[owner].make(places[owner], chunks);
        REQUIRE(part.ok());
        mean.parts.push_back(*part);
      }
      std::vector<float> c(kDimension);
      REQUIRE(nodes[0].decode(mean, c));
      for (std::size_t j = 0; j < kDimension; ++j) {
        received[j] += static_cast<double>(c[j]);
      }
      for (EpochReducer& node : nodes) {
        CHECK(node.commit(mean, true));
      }
    }
  };
  steps(1, 1, 20, 1);
  steps(2, 21, 20, 1);   // owners fold what they withheld into their own errors
  steps(2, 41, 400, 0);  // what was withheld comes out in the end
  for (std::size_t j = 0; j < kDimension; ++j) {
    CHECK(received[j] == doctest::Approx(given[j]).epsilon(1e-3).scale(1));
  }
}

TEST_CASE(
    "epochs: what was encoded in an epoch that has ended is no error of the next one's mean") {
  constexpr std::size_t kElements = 64;
  const std::vector<float> gradient(kElements, 0.3F);
  const EpochPlace old{.epoch = 1, .step = 1, .index = 0, .members = 2};
  const auto reducer = [] {
    return EpochReducer(kElements, make_compressor("sign", ContractKind::any), 3);
  };
  EpochReducer other = reducer();
  std::map<std::uint16_t, SharedBytes> first;
  REQUIRE(other.encode({.epoch = 2, .step = 1, .index = 0, .members = 2}, 0, gradient).ok());
  first.emplace(std::uint16_t{0}, other.encoding(0));
  const auto made = other.make({.epoch = 2, .step = 1, .index = 0, .members = 2}, first);
  REQUIRE(made.ok());
  EpochReducer late = reducer();  // its chunks of the old epoch went out, and none in the new one
  REQUIRE(late.encode(old, 0, gradient).ok());
  late.begin_epoch();
  CHECK(!late.commit({.step = 1, .parts = {*made, *made}}, false));
  // Nothing was withheld, so that its next gradient is sent as that of a node which begins.
  const EpochPlace after{.epoch = 2, .step = 2, .index = 1, .members = 2};
  REQUIRE(late.encode(after, 0, gradient).ok());
  EpochReducer fresh = reducer();
  REQUIRE(fresh.encode(after, 0, gradient).ok());
  CHECK(std::ranges::equal(late.encoding(0), fresh.encoding(0)));
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

TEST_CASE("epochs: a compressor that goes by tensors is refused") {
  ParameterLayout layout;
  append_block(layout, "w", {2, 3});
  const auto make = [&] {
    const EpochReducer reducer(
        6, make_compressor("lowrank:1", ContractKind::any, host_ops(), layout), 1);
  };
  CHECK_THROWS_WITH_AS(make(), doctest::Contains("chunk"), Error);
}

}  // namespace sotto::test::epoch_mean_test
