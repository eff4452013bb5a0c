#include <sotto/trainers/placed_model.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include <sotto/base/check.h>
#include <sotto/base/error.h>
#include <sotto/comm/store.h>
#include <sotto/optim/registry.h>
#include <sotto/optim/step_rules/by_tensor.h>
#include <sotto/trainers/optimizer_options.h>

namespace sotto {
namespace {

constexpr std::string_view kAtNodes = "nodes";

bool has_experts(const PlacedModel& placed) { return placed.kind == PlacedModel::Kind::experts; }

/// The axis of all nodes.
std::string_view axis_of(const PlacedModel& placed) {
  return has_experts(placed) ? "expert" : "part";
}

/// The setting that asks for the model, in a sentence.
SettingText asked_by(const PlacedModel& placed) {
  return has_experts(placed) ? mention("experts_at", kAtNodes) : mention("task", placed.asked);
}

/// Algorithms after whose rounds all nodes have one model, made of the mean of their gradients.
void require_mean_of_gradients(const OptimizerOptions& options) {
  const AlgorithmInfo& info = algorithm_info(options.algorithm);
  const PlacedModel& placed = *options.placed;
  if (info.graph != GraphNeed::any) {
    refuse("algorithm", info.name,
           "its nodes mix whole models with their neighbours, and with " + asked_by(placed) +
               (has_experts(placed) ? " no node has a whole one"
                                    : " rows of a round are those of one model") +
               "; take one that averages gradients over all nodes, as allreduce, qmean, sharded, "
               "ef21 or onebit-adam");
  }
  const std::string_view only = info.step_rules.only;
  if (has_experts(placed) && !only.empty() && only != "adam" && only != "lamb") {
    refuse("algorithm", info.name,
           "it makes steps of its own kind of what all nodes send, and an expert with " +
               mention("experts_at", kAtNodes) +
               " is stepped by one node; take allreduce, qmean, sharded, ef21 or onebit-adam");
  }
}

/// Some algorithms make local steps of their own accord, up to so many of them.
void require_exchange_in_each_round(const OptimizerOptions& options) {
  constexpr std::string_view kLimit = "local_step_limit";
  const Hyperparameters given = parse_algorithm(options.algorithm).hyperparameters;
  const auto limit = std::ranges::find(given.table(), kLimit, &Hyperparameter::setting);
  const bool steps_alone = limit != given.table().end() && given.has(limit->needs) &&
                           given.optional_count(limit->key).value_or(1) > 1;
  if (steps_alone) {
    const PlacedModel& placed = *options.placed;
    refuse("algorithm", options.algorithm,
           (has_experts(placed)
                ? "its nodes make steps of their own between exchanges, and an expert with "
                : "its nodes make steps of their own between exchanges, and each part with ") +
               asked_by(placed) + " takes rows of all nodes in every step; give " +
               mention(kLimit, "1") + ", or take onebit-adam");
  }
}

/// The nodes bring their own tensors together as one value of the store.
void require_room_in_store(const PlacedModel& placed, int nodes) {
  const std::size_t parameters = size_of_parts(placed.everyones());
  constexpr std::size_t kMost = kMostStoreValueBytes / sizeof(float);
  if (nodes > 1 && parameters > kMost) {  // only experts have any
    refuse("experts_at", kAtNodes,
           fmt::format("experts have {} parameters together, and nodes bring {} together at most; "
                       "take fewer experts, or smaller ones",
                       parameters, kMost));
  }
}

}  // namespace

std::vector<Chunk> PlacedModel::everyones() const {
  std::vector<Chunk> all;
  for (const auto& one : own) {
    all.insert(all.end(), one.begin(), one.end());
  }
  return all;
}

SteppedTensors PlacedModel::stepped(std::size_t parameters, Rank rank) const {
  std::vector<Chunk> of_nodes = everyones();
  std::ranges::sort(of_nodes, {}, &Chunk::offset);
  SteppedTensors stepped{.common = {}, .own = own.at(static_cast<std::size_t>(rank))};
  std::size_t next = 0;
  for (const Chunk& chunk : of_nodes) {
    check(chunk.offset >= next, "a tensor lies at one node");
    if (chunk.offset > next) {
      stepped.common.push_back({.offset = next, .size = chunk.offset - next});
    }
    next = chunk.offset + chunk.size;
  }
  check(next <= parameters, "own tensors are those of the model");
  if (next < parameters) {
    stepped.common.push_back({.offset = next, .size = parameters - next});
  }
  return stepped;
}

void check_placed(const OptimizerOptions& options) {
  const PlacedModel& placed = *options.placed;
  require_mean_of_gradients(options);
  require_exchange_in_each_round(options);
  require_room_in_store(placed, options.nodes);
  // What a setting does to experts, and to a graph in parts; nothing where it goes with one.
  const auto refuse_beside = [&](bool given, std::string_view setting, std::string_view experts,
                                 std::string_view graph) {
    const std::string_view why = has_experts(placed) ? experts : graph;
    if (given && !why.empty()) {
      throw Error(
          has_experts(placed) ? "experts_at" : "task",
          asked_by(placed) + " does not go with " + mention(setting) + fmt::format(": {}", why));
    }
  };
  refuse_beside(options.privacy.has_value(), "privacy_epsilon",
                "noise is put on gradients, and the rows that go to experts tell of the data",
                "noise is put on gradients, and the rows of boundary people tell of the data");
  refuse_beside(std::isfinite(options.step_rule.clip_norm), "clip_norm",
                "each node steps on a part of the model alone, and clipping goes by all of it", "");
  refuse_beside(options.communication_interval > 1, "communication_interval",
                "an expert has one owner, who steps it in every round",
                "rows of a round are those of one model, which nodes have after each exchange");
  refuse_beside(options.outer_step_rule.has_value() || options.outer_after_mixing,
                "outer_step_rule", "it steps whole models between exchanges",
                "it steps models that have gone apart, and these are one in every round");
  refuse_beside(options.streaming.on(), "fragments", "it sends whole models piece by piece",
                "it sends models piece by piece that have gone apart");
  refuse_beside(options.delayed_gradient, "delayed_gradient",
                "rows of one step would meet experts of another",
                "rows of one round would meet weights of another");
  refuse_beside(!options.groups.empty(), "groups", "groups of nodes train a whole model each",
                "groups of nodes train a model each, and a part is of use to all of them");
  refuse_beside(options.weight.has_value(), "weight",
                "experts would have to know how much each row counts",
                "each rating has its weight already");
  refuse_beside(options.join != Join::none, "join",
                "a node that is out of data still has experts that others need",
                "each round is a pass over all data");
  refuse_beside(!options.test.byzantine.empty(), "byzantine",
                "a node that lies has whole experts to itself",
                "a node that lies has a whole part to itself");
  refuse_beside(options.accelerator != nullptr, "accelerator",
                "a program's vectors lie with the host", "a program's vectors lie with the host");
  refuse_beside(static_cast<bool>(options.own_step_rule), "own_step_rule",
                "each of the two parts of the model has a step rule",
                "the step rule is made of settings that all nodes share");
}

std::unique_ptr<Algorithm> make_node_algorithm(const OptimizerOptions& options,
                                               AlgorithmSetup setup,
                                               std::vector<std::string>* warnings) {
  if (!options.placed) {
    return make_algorithm(options.algorithm, std::move(setup), warnings);
  }
  const PlacedModel& placed = *options.placed;
  const ProgramSetup program = {.rank = setup.rank,
                                .nodes = setup.nodes,
                                .grid = fmt::format("{}={}", axis_of(placed), setup.nodes),
                                .parameters = setup.parameters,
                                .seed = setup.seed,
                                .run_id = setup.run_id};
  SteppedTensors stepped = placed.stepped(setup.parameters.size(), setup.rank);
  auto own_rule = make_step_rule_of_part(options.step_rule, setup.layout,
                                         tensors_of_parts(setup.layout, stepped.own));
  auto parts = std::make_unique<OwnTensors>(options.algorithm, std::move(setup), std::move(stepped),
                                            std::move(own_rule), warnings);
  return std::make_unique<ProgramGradient>(program, placed.build, axis_of(placed), std::move(parts),
                                           placed.settings);
}

void bring_together(const PlacedModel& placed, std::span<std::vector<float>> models) {
  for (std::size_t owner = 0; owner < models.size(); ++owner) {
    if (models[owner].empty()) {
      continue;
    }
    const std::vector<Chunk>& own = placed.own[owner];
    std::vector<float> values(size_of_parts(own));
    read_parts(own, models[owner], values);
    for (std::vector<float>& model : models) {
      if (!model.empty()) {
        write_parts(own, values, model);
      }
    }
  }
}

}  // namespace sotto
