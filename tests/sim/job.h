// A job for tests of the simulator: nodes with quadratic losses of their own, in one call.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <sotto/base/philox.h>
#include <sotto/compress/registry.h>
#include <sotto/optim/exchange/frame_room.h>
#include <sotto/optim/registry.h>
#include <sotto/sim/simulator.h>
#include <sotto/topology/registry.h>

#include "optim/with_freeze.h"

namespace sotto {

inline constexpr std::size_t kJobDimension = 60;

/// A job of `nodes` nodes on f_i(x) = ½ Σ h_k (x_k − c_k)².
struct Job {
  std::string algorithm = "dpsgd";
  std::string compressor = {};
  std::string topology = "ring";
  int nodes = 6;
  std::size_t dimension = kJobDimension;
  std::uint32_t buckets = 1;
  bool delayed_gradient = false;
  Round interval = 1;
  Streaming streaming = {};
  bool outer_after_mixing = false;
  bool shared = false;  ///< nodes share what they can, as those of scenarios do
  std::vector<std::vector<float>> x = {};

  std::vector<std::unique_ptr<Algorithm>> make() {
    x.assign(static_cast<std::size_t>(nodes), std::vector<float>(dimension, 1));
    const std::shared_ptr<const Topology> graph = make_topology(topology, nodes);
    const auto frames = shared ? std::make_shared<FrameRoom>() : nullptr;
    const auto scratch = shared ? std::make_shared<Vector>(dimension, host_ops()) : nullptr;
    std::vector<std::unique_ptr<Algorithm>> algorithms;
    for (Rank rank = 0; rank < nodes; ++rank) {
      AlgorithmSetup setup;
      setup.rank = rank;
      setup.nodes = nodes;
      setup.parameters = x[static_cast<std::size_t>(rank)];
      setup.topology = graph;
      StepRuleOptions step;
      step.learning_rate = 0.05;
      step.rule = algorithm_info(algorithm).step_rules.only == "adam" ? "adam" : "sgd";
      setup.step_rule = make_step_rule(step);
      setup.communication_interval = interval;
      if (interval > 1) {
        setup.further_outer_rules = [] {
          return make_step_rule({.learning_rate = 0.7, .momentum = 0.5});
        };
        setup.outer_step_rule = setup.further_outer_rules();
      }
      setup.streaming = streaming;
      setup.outer_after_mixing = outer_after_mixing;
      setup.compressor = compressor.empty() ? nullptr : make_compressor(compressor);
      setup.seed = 5;
      setup.frames = frames;
      setup.scratch = scratch;
      setup.buckets = buckets;
      setup.delayed_gradient = delayed_gradient;
      setup.allow_contract_violation = true;
      algorithms.push_back(make_algorithm(test::with_freeze(algorithm, 10), std::move(setup)));
    }
    return algorithms;
  }
};

inline void gradient(Rank rank, Round round, std::span<const float> at, std::span<float> g) {
  RandomStream noise({.seed = 9, .rank = rank, .round = round, .purpose = Purpose::test});
  for (std::size_t k = 0; k < g.size(); ++k) {
    const float centre = static_cast<float>((rank + 1) * static_cast<int>(k % 7));
    g[k] = at[k] - centre + static_cast<float>(noise.uniform() - 0.5);
  }
}

inline SimulationReport simulate(Job& job, const SimulatorOptions& options,
                                 const Platform& platform, SimulatorHooks hooks = {}) {
  Simulator simulator(platform, options, job.make(), gradient, std::move(hooks));
  return simulator.run();
}

}  // namespace sotto
