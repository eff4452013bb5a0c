// A model whose gradient the nodes make together: experts, of which some tensors lie at one node
// each and the others at all, or a network on a graph in parts. What an optimizer needs to train
// it.
//
// A program makes the model's gradient (groups/program.h): its nodes exchange rows within a step.
// The gradients that are handed over begin a round and are otherwise ignored. Tensors that lie at
// one node are stepped there alone, by the step rule, whose selectors of tensors are judged on the
// whole model (make_step_rule_of_part); the others go by the optimizer's algorithm
// (optim/wrappers/own_tensors.h). Each node's parameters are the whole model, of which the tensors
// of other nodes are out of date until the nodes bring them together: an optimizer does before
// models are averaged, and a whole run (run.h) also before they are saved.
//
// Thread safety: plain values and pure functions; the program's builder may be called on any
// thread.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <sotto/groups/program_gradient.h>
#include <sotto/optim/algorithm.h>
#include <sotto/optim/wrappers/own_tensors.h>

namespace sotto {

struct OptimizerOptions;

struct PlacedModel {
  /// What the nodes have parts of.
  enum class Kind {
    experts,  ///< some tensors lie at one node each
    graph,    ///< the data: rows of boundary nodes travel, and all nodes have all tensors
  };

  Kind kind = Kind::experts;
  /// The task that asks for a graph in parts, for refusals; experts are asked for by "experts_at".
  std::string asked = {};
  /// The parameters of each node's own tensors, by rank, ascending; whole tensors.
  std::vector<std::vector<Chunk>> own;
  /// The program that makes a node's gradient: of the common tensors the one of this node's loss,
  /// of its own ones that of the mean of all nodes' losses. Its group is the only axis of all
  /// nodes, "expert" or "part".
  BuildGradientProgram build;
  /// All that the nodes' programs must agree on, as text.
  std::string settings;

  /// All nodes' own tensors, by rank.
  std::vector<Chunk> everyones() const;
  /// What node `rank` steps of a model of `parameters`.
  SteppedTensors stepped(std::size_t parameters, Rank rank) const;
};

/// Throws Error (field "experts_at" or "task", or that of the other setting) for options that go
/// with no such model: algorithms that mix whole models, local steps, groups, weights, privacy,
/// attacks, accelerators; with experts also steps of their own kind, clipping, and own tensors that
/// are more than a value of the store. options.placed must be one.
void check_placed(const OptimizerOptions& options);

/// The algorithm of a node, which has `setup` (make_algorithm_setup): that of a PlacedModel where
/// options.placed is one. `warnings` may be null. Throws Error.
std::unique_ptr<Algorithm> make_node_algorithm(const OptimizerOptions& options,
                                               AlgorithmSetup setup,
                                               std::vector<std::string>* warnings = nullptr);

/// Replaces each node's copies of other nodes' tensors by what their owners have. The models are by
/// rank; an empty one is missing, and what it owns stays as the others have it.
void bring_together(const PlacedModel& placed, std::span<std::vector<float>> models);

}  // namespace sotto
