// N nodes of one algorithm in lock step, for tests.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <sotto/base/philox.h>
#include <sotto/compress/registry.h>
#include <sotto/optim/registry.h>
#include <sotto/sim/lockstep.h>
#include <sotto/topology/registry.h>

#include "optim/with_freeze.h"

namespace sotto::test {

struct ClusterOptions {
  std::string algorithm = "dpsgd";
  std::string compressor = {};  ///< the algorithm's default when empty
  std::string topology = "ring";
  std::size_t nodes = 8;
  std::vector<std::vector<Rank>> groups = {};  ///< of which `topology` is the graph
  std::size_t dimension = 64;
  StepRuleOptions step = {};
  Round communication_interval = 1;
  std::uint32_t buckets = 1;
  bool delayed_gradient = false;
  std::optional<StepRuleOptions> outer_step = {};
  Streaming streaming = {};
  bool outer_after_mixing = false;
  /// For algorithms that have one and are not given it in their specification: early, so that short
  /// runs see both of their phases.
  std::optional<Round> freeze_step = 2;
  std::uint64_t seed = 1;
  bool allow_contract_violation = false;
  Delivery delivery = Delivery::eager;
  double initial_scale = 1;     ///< all nodes start from this times the same N(0, 1) vector
  ParameterLayout layout = {};  ///< one tensor when empty
};

/// The algorithm's whole specification.
inline std::string spec_of(const ClusterOptions& options) {
  return options.freeze_step ? with_freeze(options.algorithm, *options.freeze_step)
                             : options.algorithm;
}

/// The graph that options.topology names, with weights that the algorithm takes.
inline std::shared_ptr<const Topology> cluster_topology(const ClusterOptions& options) {
  const bool lazy = algorithm_info(options.algorithm).eigenvalues_above > -1;
  const std::size_t nodes = options.groups.empty() ? options.nodes : options.groups.size();
  return make_topology(options.topology, static_cast<int>(nodes),
                       {.lazy = lazy, .seed = options.seed});
}

/// `step`, or the rule that the algorithm insists on with the settings of `step` that it has.
inline StepRuleOptions fitting(StepRuleOptions step, const AlgorithmInfo& info) {
  if (!info.step_rules.only.empty() && step.rule != info.step_rules.only) {
    step.rule = info.step_rules.only;
    step.momentum = 0;
    step.nesterov = false;
  }
  return step;
}

/// The outer rule of a cluster with local steps, one that the algorithm takes.
inline StepRuleOptions outer(const ClusterOptions& options, const AlgorithmInfo& info) {
  StepRuleOptions plain{.learning_rate = 1};
  if (!info.step_rules.only.empty() && info.step_rules.only != plain.rule) {
    plain.learning_rate = 0.1;
  }
  if (info.learning_rate > 0) {
    plain.learning_rate = 50 * info.learning_rate;
  }
  return fitting(options.outer_step.value_or(plain), info);
}

/// `spec`, or the default of an algorithm that does not take compressors of its family.
inline std::string fitting(const std::string& spec, const AlgorithmInfo& info) {
  const bool fits =
      info.compressors.family.empty() || spec.substr(0, spec.find(':')) == info.compressors.family;
  return fits ? spec : std::string(info.default_compressor);
}

/// The setup of one node, to be changed before make_algorithm. `ops` is for its vectors.
inline AlgorithmSetup node_setup(const ClusterOptions& options, std::size_t rank,
                                 std::span<float> parameters,
                                 std::shared_ptr<const Topology> topology,
                                 const Ops& ops = host_ops()) {
  const AlgorithmInfo& info = algorithm_info(options.algorithm);
  AlgorithmSetup setup;
  setup.rank = static_cast<Rank>(rank);
  setup.nodes = static_cast<int>(options.nodes);
  setup.parameters = parameters;
  setup.layout = options.layout;
  setup.topology = std::move(topology);
  if (!options.groups.empty()) {
    setup.groups = std::make_shared<const NodeGroups>(options.groups);
  }
  const bool local_steps =
      options.communication_interval > 1 || options.outer_step || options.outer_after_mixing;
  setup.step_rule = make_step_rule(local_steps ? options.step : fitting(options.step, info), ops);
  setup.communication_interval = options.communication_interval;
  setup.buckets = options.buckets;
  setup.delayed_gradient = options.delayed_gradient;
  setup.streaming = options.streaming;
  setup.outer_after_mixing = options.outer_after_mixing;
  if (local_steps) {
    setup.outer_step_rule = make_step_rule(outer(options, info), ops);
    setup.further_outer_rules = [rule = outer(options, info), &ops] {
      return make_step_rule(rule, ops);
    };
  }
  if (!options.compressor.empty()) {
    setup.compressor =
        make_compressor(options.compressor, info.contract, host_ops(), options.layout);
  }
  setup.seed = options.seed;
  setup.run_id = 77;
  setup.allow_contract_violation = options.allow_contract_violation;
  return setup;
}

inline bool same_bits(std::span<const float> a, std::span<const float> b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](float left, float right) {
    return std::bit_cast<std::uint32_t>(left) == std::bit_cast<std::uint32_t>(right);
  });
}

/// Algorithms that freeze Adam's variance.
inline std::vector<const AlgorithmInfo*> freezing_algorithms() {
  std::vector<const AlgorithmInfo*> found;
  for (const AlgorithmInfo& info : algorithms()) {
    if (info.has("freeze")) {
      found.push_back(&info);
    }
  }
  return found;
}

/// Wraps a node's algorithm.
using Wrap = std::function<std::unique_ptr<Algorithm>(std::unique_ptr<Algorithm>)>;

class Cluster {
 public:
  explicit Cluster(const ClusterOptions& options, const Wrap& wrap = {})
      : Cluster(options, cluster_topology(options), wrap) {}

  Cluster(const ClusterOptions& options, const std::shared_ptr<const Topology>& topology,
          const Wrap& wrap = {})
      : driver(options.delivery), x(options.nodes, std::vector<float>(options.dimension)) {
    for (std::size_t rank = 0; rank < options.nodes; ++rank) {
      RandomStream stream({.seed = options.seed, .purpose = Purpose::initialize});
      for (float& value : x[rank]) {
        value = static_cast<float>(options.initial_scale * stream.normal());
      }
      auto algorithm =
          make_algorithm(spec_of(options), node_setup(options, rank, x[rank], topology));
      driver.add(wrap ? wrap(std::move(algorithm)) : std::move(algorithm));
    }
  }

  template <typename T>
  const T& node(std::size_t rank) const {
    return dynamic_cast<const T&>(driver.node(rank));
  }

  /// The mean of the models, in double precision.
  std::vector<double> mean() const {
    std::vector<double> mean(x[0].size());
    for (const auto& model : x) {
      for (std::size_t k = 0; k < mean.size(); ++k) {
        mean[k] += static_cast<double>(model[k]) / static_cast<double>(x.size());
      }
    }
    return mean;
  }

  LockstepDriver driver;
  std::vector<std::vector<float>> x;
};

/// f_i(x) = ½ Σ_k h_k (x_k − c_ik)², with gradients that may carry Gaussian noise.
class Quadratic {
 public:
  /// h from 0.1 to 1, c_i ~ N(1, 1).
  Quadratic(std::size_t nodes, std::size_t dimension, std::uint64_t seed, double noise = 0)
      : h_(dimension), c_(nodes, std::vector<double>(dimension)), noise_(noise), seed_(seed) {
    for (std::size_t k = 0; k < dimension; ++k) {
      h_[k] = dimension == 1
                  ? 1
                  : 0.1 + 0.9 * static_cast<double>(k) / static_cast<double>(dimension - 1);
    }
    for (std::size_t i = 0; i < nodes; ++i) {
      RandomStream stream({.seed = seed, .rank = static_cast<Rank>(i), .purpose = Purpose::test});
      for (double& c : c_[i]) {
        c = 1 + stream.normal();
      }
    }
  }

  void operator()(Rank rank, Round round, std::span<const float> x, std::span<float> g) const {
    const auto& c = c_[static_cast<std::size_t>(rank)];
    RandomStream stream({.seed = seed_, .rank = rank, .round = round, .purpose = Purpose::shuffle});
    for (std::size_t k = 0; k < x.size(); ++k) {
      const double noise = noise_ == 0 ? 0 : noise_ * stream.normal();
      g[k] = static_cast<float>(h_[k] * (static_cast<double>(x[k]) - c[k]) + noise);
    }
  }

  /// x ← x − rate ∇f(x), without noise, where f is the mean of all f_i.
  void descend(double rate, std::vector<double>& x) const {
    for (std::size_t k = 0; k < x.size(); ++k) {
      x[k] -= rate * h_[k] * (x[k] - centre(k));
    }
  }

  /// f(x) − min f, where f is the mean of all f_i.
  double excess(const std::vector<double>& x) const {
    double excess = 0;
    for (std::size_t k = 0; k < x.size(); ++k) {
      excess += 0.5 * h_[k] * (x[k] - centre(k)) * (x[k] - centre(k));
    }
    return excess;
  }

 private:
  double centre(std::size_t k) const {
    double sum = 0;
    for (const auto& c : c_) {
      sum += c[k];
    }
    return sum / static_cast<double>(c_.size());
  }

  std::vector<double> h_;
  std::vector<std::vector<double>> c_;
  double noise_;
  std::uint64_t seed_;
};

}  // namespace sotto::test
