// A step rule at the owners of chunks, between two compressed passes.
#include <sotto/optim/algorithms/sharded.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/base/frame.h>
#include <sotto/optim/exchange/chunks.h>

#include "optim/cluster.h"
#include "optim/noise.h"
#include "optim/saved_state.h"
#include "support/seed.h"

namespace sotto::test::sharded_test {

namespace {

/// A drawn case: some nodes, a model that they rarely divide, and compressors.
struct Drawn {
  std::uint64_t seed = drawn_seed();
  std::mt19937_64 random{seed};
  std::size_t nodes = 1 + random() % 9;
  std::size_t dimension = 1 + random() % 300;

  std::string one_of(const std::vector<std::string>& choices) {
    return choices[random() % choices.size()];
  }
  std::string compressor() {
    return one_of({"none", "sign", "topk:0.1", "quant:8", "quant:4,chunk=64", "quant:2", "fp16",
                   "randk:0.3"});
  }
};

/// Adam, or SGD with momentum, with or without weight decay of either kind.
std::vector<StepRuleOptions> rules() {
  return {{.learning_rate = 0.05},
          {.learning_rate = 0.05, .momentum = 0.9, .nesterov = true, .weight_decay = 0.1},
          {.rule = "adam", .learning_rate = 0.01},
          {.rule = "adam", .learning_rate = 0.01, .weight_decay = 0.1},
          {.rule = "adamw", .learning_rate = 0.01, .weight_decay = 0.1}};
}

ClusterOptions options_for(const Drawn& drawn, std::string algorithm, std::string compressor,
                           const StepRuleOptions& step) {
  return {.algorithm = std::move(algorithm),
          .compressor = std::move(compressor),
          .nodes = drawn.nodes,
          .dimension = drawn.dimension,
          .step = step,
          .freeze_step = 1000,  // beyond all runs
          .seed = drawn.seed};
}

double gap_of(const Cluster& a, const Cluster& b) {
  double gap = 0;
  for (std::size_t i = 0; i < a.x.size(); ++i) {
    gap = std::fmax(gap, largest_gap(a.x[i], b.x[i]));
  }
  return gap;
}

/// x + e, put together from all owners.
std::vector<double> owners_model(const Cluster& cluster) {
  std::vector<double> model(cluster.x[0].begin(), cluster.x[0].end());
  for (std::size_t i = 0; i < cluster.x.size(); ++i) {
    const auto& node = cluster.node<Sharded>(i);
    const auto held = node.chunk_mean().chunk_error();
    for (std::size_t k = 0; k < node.owned().size; ++k) {
      model[node.owned().offset + k] += static_cast<double>(held[k]);
    }
  }
  return model;
}

/// The rule in the paper's words, all nodes at once. C and C′ must not draw.
class ByTheRule {
 public:
  ByTheRule(const Cluster& cluster, const ClusterOptions& options, const std::string& gather)
      : n_(static_cast<int>(options.nodes)),
        x_(cluster.x[0]),
        e_(x_.size()),
        delta_(options.nodes, std::vector<float>(x_.size())),
        codec_(make_compressor(options.compressor, ContractKind::contraction)),
        gather_(make_compressor(gather, ContractKind::contraction)) {
    for (int k = 0; k < n_; ++k) {
      rules_.push_back(make_step_rule(options.step));
      rules_.back()->resize(one_tensor(chunk_of(x_.size(), n_, k).size));
    }
  }

  void round(Round t, const GradientFunction& gradient) {
    std::vector<std::vector<float>> sent(delta_.size(), std::vector<float>(x_.size()));
    for (std::size_t i = 0; i < delta_.size(); ++i) {
      std::vector<float> g(x_.size());
      gradient(static_cast<Rank>(i), t, x_, g);
      for (std::size_t k = 0; k < g.size(); ++k) {
        delta_[i][k] += g[k];
      }
      for (int k = 0; k < n_; ++k) {
        pass(*codec_, chunk(k).of(std::span(delta_[i])), chunk(k).of(std::span(sent[i])));
      }
    }
    std::vector<float> update(x_.size());
    for (int k = 0; k < n_; ++k) {
      const auto own = chunk(k);
      std::vector<float> mean(own.size);
      std::vector<float> exact(own.size);
      for (std::size_t j = 0; j < own.size; ++j) {
        for (const auto& from : sent) {
          mean[j] += from[own.offset + j];
        }
        mean[j] *= 1.0F / static_cast<float>(n_);
        exact[j] = x_[own.offset + j] + e_[own.offset + j];
      }
      REQUIRE(rules_[static_cast<std::size_t>(k)]->direction(t, exact, mean, mean).ok());
      for (std::size_t j = 0; j < own.size; ++j) {
        e_[own.offset + j] -= mean[j];
      }
      pass(*gather_, own.of(std::span(e_)), own.of(std::span(update)));
    }
    for (std::size_t k = 0; k < x_.size(); ++k) {
      x_[k] += update[k];
    }
  }

  const std::vector<float>& model() const { return x_; }
  std::span<const float> owners_error() const { return e_; }

 private:
  Chunk chunk(int k) const { return chunk_of(x_.size(), n_, k); }
  /// y = C(v); v ← v − C(v)
  static void pass(Compressor& codec, std::span<float> v, std::span<float> y) {
    std::vector<std::byte> bytes(codec.max_bytes(v.size()));
    const std::size_t size = codec.encode_residual(v, {}, bytes);
    REQUIRE(codec.decode_add(std::span(bytes).first(size), 1, y).ok());
  }

  int n_;
  std::vector<float> x_;
  std::vector<float> e_;
  std::vector<std::vector<float>> delta_;
  std::unique_ptr<Compressor> codec_;
  std::unique_ptr<Compressor> gather_;
  std::vector<std::unique_ptr<StepRule>> rules_;
};

}  // namespace

TEST_CASE("sharded without compression, with Adam, is apmsqueeze before its freeze, to the bit") {
  for (int repeat = 0; repeat < 12; ++repeat) {
    Drawn drawn;
    CAPTURE(drawn.seed);
    CAPTURE(drawn.nodes);
    CAPTURE(drawn.dimension);
    const StepRuleOptions adam{
        .rule = "adam", .learning_rate = 0.01, .weight_decay = repeat % 2 == 0 ? 0 : 0.05};
    Cluster sharded(options_for(drawn, "sharded", "none", adam));
    Cluster squeeze(options_for(drawn, "apmsqueeze", "none", adam));
    const Quadratic task(drawn.nodes, drawn.dimension, drawn.seed, 0.1);
    REQUIRE(sharded.driver.run(40, task).ok());
    REQUIRE(squeeze.driver.run(40, task).ok());
    for (std::size_t i = 0; i < drawn.nodes; ++i) {
      REQUIRE(same_bits(sharded.x[i], squeeze.x[i]));
    }
  }
}

TEST_CASE("sharded without compression, with SGD, is allreduce, and of a node alone, to the bit") {
  for (int repeat = 0; repeat < 12; ++repeat) {
    Drawn drawn;
    drawn.nodes = repeat < 4 ? 1 : drawn.nodes;
    CAPTURE(drawn.seed);
    CAPTURE(drawn.nodes);
    CAPTURE(drawn.dimension);
    Cluster sharded(options_for(drawn, "sharded", "none", {.learning_rate = 0.05}));
    Cluster ring(options_for(drawn, "allreduce", "none", {.learning_rate = 0.05}));
    const Quadratic task(drawn.nodes, drawn.dimension, drawn.seed, 0.1);
    for (Round t = 0; t < 40; ++t) {
      REQUIRE(sharded.driver.run(1, task).ok());
      REQUIRE(ring.driver.run(1, task).ok());
      if (drawn.nodes == 1) {
        REQUIRE(same_bits(sharded.x[0], ring.x[0]));
      }
    }
    CHECK(gap_of(sharded, ring) < 1e-6 * 4);  // models of size 4
  }
}

TEST_CASE("sharded: owners clip nodes' parts of a chunk as those of qmean do") {
  for (int repeat = 0; repeat < 12; ++repeat) {
    Drawn drawn;
    CAPTURE(drawn.seed);
    CAPTURE(drawn.nodes);
    CAPTURE(drawn.dimension);
    const StepRuleOptions sgd = {.learning_rate = 0.05};
    Cluster sharded(options_for(drawn, "sharded:clip=median,gather=none", "none", sgd));
    Cluster mean(options_for(drawn, "qmean:clip=median", "none", sgd));
    Cluster plain(options_for(drawn, "qmean", "none", sgd));
    const Quadratic task(drawn.nodes, drawn.dimension, drawn.seed, 0.1);
    REQUIRE(sharded.driver.run(20, task).ok());
    REQUIRE(mean.driver.run(20, task).ok());
    REQUIRE(plain.driver.run(20, task).ok());
    CHECK(gap_of(sharded, mean) < 1e-4);
    CHECK((drawn.nodes == 1 || gap_of(sharded, plain) > 1e-3));
  }
}

TEST_CASE("sharded without compression is allreduce with every rule that goes by elements") {
  for (const StepRuleOptions& step : rules()) {
    Drawn drawn;
    CAPTURE(step.rule);
    CAPTURE(drawn.seed);
    Cluster sharded(options_for(drawn, "sharded", "none", step));
    Cluster ring(options_for(drawn, "allreduce", "none", step));
    const Quadratic task(drawn.nodes, drawn.dimension, drawn.seed, 0.1);
    REQUIRE(sharded.driver.run(60, task).ok());
    REQUIRE(ring.driver.run(60, task).ok());
    CHECK(gap_of(sharded, ring) < 1e-4);
  }
}

TEST_CASE("sharded: all nodes stay equal to the bit, with any compressors, rules and local steps") {
  for (int repeat = 0; repeat < 40; ++repeat) {
    Drawn drawn;
    const std::string gather = drawn.compressor();
    auto options = options_for(drawn, "sharded:gather=" + gather, drawn.compressor(),
                               rules()[drawn.random() % rules().size()]);
    options.communication_interval = 1 + drawn.random() % 3;
    options.outer_step = StepRuleOptions{.learning_rate = 0.7, .momentum = 0.9};
    if (options.communication_interval == 1) {
      options.outer_step.reset();
    }
    options.delivery = Delivery::late;
    CAPTURE(drawn.seed);
    CAPTURE(options.algorithm);
    CAPTURE(options.compressor);
    Cluster late(options);
    options.delivery = Delivery::eager;
    Cluster eager(options);
    const Quadratic task(drawn.nodes, drawn.dimension, drawn.seed, 0.1);
    for (int exchange = 0; exchange < 5; ++exchange) {
      const Status status = late.driver.run(options.communication_interval, task);
      CAPTURE(status.message());
      REQUIRE(status.ok());
      REQUIRE(eager.driver.run(options.communication_interval, task).ok());
      for (std::size_t i = 0; i < drawn.nodes; ++i) {
        REQUIRE(same_bits(late.x[i], late.x[0]));
        REQUIRE(same_bits(late.x[i], eager.x[i]));
      }
    }
  }
}

TEST_CASE("sharded follows the rule, with any two compressors that do not draw") {
  const std::vector<std::string> codecs = {"none", "topk:0.2", "quant:8", "quant:4", "sign"};
  for (int repeat = 0; repeat < 30; ++repeat) {
    Drawn drawn;
    const std::string gather = drawn.one_of(codecs);
    const auto options = options_for(drawn, "sharded:gather=" + gather, drawn.one_of(codecs),
                                     rules()[drawn.random() % rules().size()]);
    CAPTURE(drawn.seed);
    CAPTURE(drawn.nodes);
    CAPTURE(drawn.dimension);
    CAPTURE(options.algorithm);
    CAPTURE(options.compressor);
    CAPTURE(options.step.rule);
    Cluster cluster(options);
    ByTheRule expected(cluster, options, gather);
    const auto gradient = noise_of(drawn.seed);
    for (Round t = 0; t < 20; ++t) {
      REQUIRE(cluster.driver.run(1, gradient).ok());
      expected.round(t, gradient);
      REQUIRE(same_bits(cluster.x[0], expected.model()));
      for (std::size_t i = 0; i < drawn.nodes; ++i) {
        const auto& node = cluster.node<Sharded>(i);
        REQUIRE(
            same_bits(node.chunk_mean().chunk_error(), node.owned().of(expected.owners_error())));
      }
    }
  }
}

TEST_CASE("sharded: what owners hold is their model without C′, weight decay included") {
  for (const StepRuleOptions& step : rules()) {
    for (const std::string gather : {"sign", "topk:0.1", "quant:4", "quant:2", "randk:0.3"}) {
      Drawn drawn;
      CAPTURE(drawn.seed);
      CAPTURE(step.rule);
      CAPTURE(gather);
      Cluster coarse(options_for(drawn, "sharded:gather=" + gather, "none", step));
      Cluster exact(options_for(drawn, "sharded:gather=none", "none", step));
      const auto gradient = noise_of(drawn.seed);  // does not see the model
      REQUIRE(coarse.driver.run(80, gradient).ok());
      REQUIRE(exact.driver.run(80, gradient).ok());
      const auto whole = owners_model(coarse);
      for (std::size_t k = 0; k < drawn.dimension; ++k) {
        REQUIRE(std::fabs(whole[k] - static_cast<double>(exact.x[0][k])) < 1e-4);
      }
    }
  }
}

TEST_CASE("sharded sends a chunk's encoding each way, by the two compressors") {
  const std::vector<std::string> fixed = {"none", "sign", "quant:8", "quant:4", "fp16"};
  for (int repeat = 0; repeat < 20; ++repeat) {
    Drawn drawn;
    const std::string scatter = drawn.one_of(fixed);
    const std::string gather = drawn.one_of(fixed);
    CAPTURE(drawn.seed);
    CAPTURE(scatter);
    CAPTURE(gather);
    Cluster cluster(
        options_for(drawn, "sharded:gather=" + gather, scatter, {.learning_rate = 0.01}));
    constexpr Round kRounds = 4;
    REQUIRE(cluster.driver.run(kRounds, noise_of(drawn.seed)).ok());
    const auto bytes = [&](const std::string& codec, std::size_t owner) {
      const auto made = make_compressor(codec, ContractKind::contraction);
      const auto n = static_cast<int>(drawn.nodes);
      return kFrameHeaderBytes +
             made->max_bytes(chunk_of(drawn.dimension, n, static_cast<int>(owner)).size);
    };
    for (std::size_t node = 0; node < drawn.nodes; ++node) {
      std::size_t expected = 0;
      for (std::size_t other = 0; other < drawn.nodes; ++other) {
        expected += other == node ? 0 : kRounds * (bytes(scatter, other) + bytes(gather, node));
      }
      CHECK(cluster.driver.bytes_sent(static_cast<Rank>(node)) == expected);
    }
  }
}

TEST_CASE("sharded: a compressed model comes as near to the optimum as an exact one") {
  for (const std::string compressor : {"none", "quant:8", "quant:4"}) {
    Drawn drawn;
    drawn.nodes = 8;
    drawn.dimension = 61;
    CAPTURE(drawn.seed);
    CAPTURE(compressor);
    Cluster cluster(
        options_for(drawn, "sharded", compressor, {.rule = "adam", .learning_rate = 0.01}));
    const Quadratic task(8, 61, drawn.seed, 0.1);
    const double before = task.excess(cluster.mean());
    REQUIRE(cluster.driver.run(1500, task).ok());
    CHECK(task.excess(cluster.mean()) < 1e-3 * before);
  }
}

TEST_CASE("sharded refuses step rules that see more than an element, and says what would do") {
  const auto refusal = [](const ClusterOptions& options) {
    std::vector<float> x(options.dimension, 1.0F);
    try {
      make_algorithm(spec_of(options), node_setup(options, 0, x, cluster_topology(options)));
    } catch (const Error& error) {
      return std::make_pair(error.field(), std::string(error.what()));
    }
    return std::make_pair(std::string(), std::string());
  };
  const ClusterOptions plain{.algorithm = "sharded", .nodes = 3};
  CHECK(refusal(plain).second.empty());
  for (const StepRuleOptions& step :
       {StepRuleOptions{.rule = "lars", .learning_rate = 1}, StepRuleOptions{.rule = "lamb"},
        StepRuleOptions{.rule = "muon"}, StepRuleOptions{.rule = "sgd; 1d=adam"},
        StepRuleOptions{.rule = "adam", .clip_norm = 1}}) {
    ClusterOptions options = plain;
    options.step = step;
    CAPTURE(step.rule);
    const auto [field, why] = refusal(options);
    CAPTURE(why);
    CHECK(field == "step_rule");
    CHECK(why.find("a chunk of the model alone") != std::string::npos);
    CHECK(why.find("take sgd, adam or adamw without clipping, or qmean") != std::string::npos);
  }
  ClusterOptions local = plain;
  local.communication_interval = 4;
  local.step = {.rule = "lars", .learning_rate = 1};  // makes the local steps
  CHECK(refusal(local).second.empty());
  local.outer_step = StepRuleOptions{.rule = "lars", .learning_rate = 1};
  CHECK(refusal(local).first == "outer_step_rule");

  ClusterOptions options = plain;
  options.algorithm = "sharded:gather=quant:1,rounding=stochastic";
  CHECK(refusal(options).first == "algorithm");
  CHECK(refusal(options).second.find("'contraction'") != std::string::npos);
  options.allow_contract_violation = true;
  CHECK(refusal(options).second.empty());
  options.algorithm = "sharded:gather=quant:8; 1d=none";
  CHECK(refusal(options).second.find("not along tensors") != std::string::npos);
  options = plain;
  options.compressor = "quant:1,rounding=stochastic";
  CHECK(refusal(options).first == "compressor");
}

}  // namespace sotto::test::sharded_test
