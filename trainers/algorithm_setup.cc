#include <sotto/trainers/algorithm_setup.h>

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <sotto/base/error.h>
#include <sotto/base/workers.h>
#include <sotto/compress/registry.h>
#include <sotto/optim/exchange/chunks.h>
#include <sotto/optim/registry.h>
#include <sotto/optim/robust/attack.h>
#include <sotto/optim/step_rules/by_tensor.h>
#include <sotto/optim/wrappers/bucketed.h>
#include <sotto/topology/node_groups.h>
#include <sotto/topology/registry.h>
#include <sotto/trainers/placed_model.h>

namespace sotto {
namespace {

/// Checks who lies, and how; sorts and spells it out.
void resolve_adversary(OptimizerOptions& options) {
  auto& liars = options.test.byzantine;
  if (liars.empty() && options.test.attack.empty()) {
    return;
  }
  std::sort(liars.begin(), liars.end());
  const std::string listed = fmt::format("{}", fmt::join(liars, ","));
  if (options.test.attack.empty()) {
    refuse("byzantine", listed, "say what they do with an attack, e.g. sign-flip");
  }
  options.test.attack = parse_attack(options.test.attack).spec();
  if (liars.empty()) {
    refuse("attack", options.test.attack, "say which nodes attack, with " + mention("byzantine"));
  }
  if (liars.front() < 0 || liars.back() >= options.nodes ||
      std::adjacent_find(liars.begin(), liars.end()) != liars.end() ||
      liars.size() >= static_cast<std::size_t>(options.nodes)) {
    refuse("byzantine", listed,
           fmt::format("they are ranks below {}, each once, and one node at least is honest",
                       options.nodes));
  }
}

/// Null where all nodes are honest.
std::shared_ptr<const Adversary> adversary_of(const OptimizerOptions& options) {
  if (options.test.byzantine.empty()) {
    return nullptr;
  }
  auto adversary = std::make_shared<Adversary>();
  adversary->attack = parse_attack(options.test.attack);
  adversary->nodes = options.test.byzantine;
  return adversary;
}

std::shared_ptr<Workers> make_workers(int threads) {
  if (threads < 1 || threads > Workers::kMost) {
    refuse("codec_threads", fmt::to_string(threads),
           fmt::format("1 to {} would do", Workers::kMost));
  }
  return std::make_shared<Workers>(threads);
}

/// The piece of the model that a node sends.
struct SentModel {
  SentModel(const OptimizerOptions& options, std::size_t parameters, const ParameterLayout& whole)
      : length(parameters), layout(whole) {
    if (options.placed) {
      layout = layout_of_parts(complete_layout(whole, parameters),
                               options.placed->stepped(parameters, options.rank).common);
      length = dimension_of(layout);
      return;
    }
    if (options.groups.empty()) {
      return;
    }
    groups = std::make_shared<const NodeGroups>(options.groups);
    if (groups->size() > 1) {
      // Each node of a group sends a chunk, and the first chunk is as long as any.
      length = longest_chunk(parameters, groups->size());
      layout = {};
    }
  }

  std::shared_ptr<const NodeGroups> groups;  ///< null: each node is on its own
  std::size_t length;                        ///< parameters in it
  ParameterLayout layout;                    ///< empty: one tensor
};

/// The step rule of what a node exchanges of a model.
std::unique_ptr<StepRule> step_rule_of(const OptimizerOptions& options,
                                       const ParameterLayout& whole, const Ops& ops) {
  if (options.own_step_rule) {
    return options.own_step_rule();
  }
  if (!options.placed) {
    return make_step_rule(options.step_rule, ops);
  }
  const auto common = options.placed->stepped(dimension_of(whole), options.rank).common;
  return make_step_rule_of_part(options.step_rule, whole, tensors_of_parts(whole, common), ops);
}

}  // namespace

std::shared_ptr<const Topology> make_job_topology(const OptimizerOptions& options) {
  TopologyOptions graph;
  graph.weighting = options.weighting;
  graph.lazy = options.lazy;
  graph.seed = options.seed;
  const int groups = static_cast<int>(options.groups.size());
  return make_topology(options.topology, groups > 0 ? groups : options.nodes, graph);
}

OptimizerOptions resolved(OptimizerOptions options, std::size_t parameters,
                          const ParameterLayout& layout) {
  if (options.placed) {
    check_placed(options);
  }
  AlgorithmSpec algorithm = parse_algorithm(options.algorithm);
  const AlgorithmInfo& info = *algorithm.info;
  const SentModel sent(options, parameters, layout);
  if (options.compressor.empty()) {
    options.compressor = info.default_compressor;
  }
  const auto compressor =
      make_compressor(options.compressor, info.contract, host_ops(), sent.layout);
  options.compressor = compressor->spec();
  algorithm.hyperparameters.derive(*compressor, sent.length);
  options.algorithm = algorithm.text();
  if (!options.buckets) {
    const bool whole = !info.takes_buckets() || !compressor->divisible() || options.streaming.on();
    options.buckets = whole ? 1 : default_buckets(sent.length);
  }
  resolve_adversary(options);
  return options;
}

AlgorithmSetup make_algorithm_setup(const OptimizerOptions& options, std::span<float> parameters,
                                    const ParameterLayout& layout,
                                    std::shared_ptr<const Topology> topology) {
  const SentModel sent(options, parameters.size(), layout);
  const Ops& ops = options.accelerator ? options.accelerator->ops() : host_ops();
  AlgorithmSetup setup;
  setup.accelerator = options.accelerator;
  setup.rank = options.rank;
  setup.nodes = options.nodes;
  setup.parameters = parameters;
  setup.layout = complete_layout(layout, parameters.size());
  setup.topology = std::move(topology);
  setup.groups = sent.groups;
  setup.compressor = make_compressor(options.compressor, algorithm_info(options.algorithm).contract,
                                     host_ops(), sent.layout);
  if (options.codec_threads != 1) {
    setup.compressor->set_workers(make_workers(options.codec_threads));
  }
  setup.step_rule = step_rule_of(options, setup.layout, ops);
  setup.communication_interval = options.communication_interval;
  if (options.outer_step_rule) {
    setup.outer_step_rule = make_outer_step_rule(*options.outer_step_rule, ops);
    setup.further_outer_rules = [rule = *options.outer_step_rule, &ops] {
      return make_outer_step_rule(rule, ops);
    };
  }
  setup.streaming = options.streaming;
  setup.outer_after_mixing = options.outer_after_mixing;
  setup.delayed_gradient = options.delayed_gradient;
  if (options.privacy) {
    setup.privacy = std::make_shared<StepBudget>(*options.privacy);
  }
  setup.weighted = options.weight.has_value();
  setup.adversary = adversary_of(options);
  setup.buckets = options.buckets.value();
  setup.seed = options.seed;
  setup.allow_contract_violation = options.allow_contract_violation;
  return setup;
}

}  // namespace sotto
