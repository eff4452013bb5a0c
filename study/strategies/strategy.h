// Ways to share a model's training out over nodes: what each exchanges in a step and what a node
// holds. strategy_prices.h prices them.
//
// A strategy is a row of `strategies()`, stated at the end of its own source file. Pure functions;
// thread-safe.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <sotto/groups/program.h>
#include <sotto/study/strategies/model_shape.h>
#include <sotto/study/train/run_spec.h>

namespace sotto::study {

/// Floats that an algorithm of the registry mixes over all nodes in a step.
struct MixedPart {
  std::string algorithm = "allreduce";
  std::string compressor = "none";
  std::size_t elements = 0;
};

/// Builds a node's program with so many blocks.
using BuildBlocks =
    std::function<std::unique_ptr<Program>(const ProgramNode& node, std::size_t blocks)>;

/// What a program exchanges in a step.
struct ProgramPart {
  std::string grid;        ///< grid of the nodes, "data=2,stage=4"
  BuildBlocks build;       ///< makes exchanges without contents
  std::size_t blocks = 1;  ///< blocks of a step, one behind the other, all alike
  /// The stages' flops are parts of the time of a gradient, 1 being all of it; else a node takes a
  /// whole gradient first.
  bool paced = false;
  std::size_t elements = 0;  ///< about how many floats the programs of all nodes hold, for a block
};

/// One way to follow a strategy: a step's parts are carried one behind the other.
struct StrategyWay {
  std::string text;  ///< what is chosen: "data=2,stage=4"; "" where there is no choice
  MixedPart mixed;
  std::optional<ProgramPart> program = {};
  double memory_floats = 0;         ///< floats of a node: parameters, gradient, state, rows
  std::optional<RunSpec> run = {};  ///< `sotto train` has it by this run
};

/// What is known of a strategy before anything is priced.
struct Strategy {
  std::string_view name;
  std::string_view what;       ///< what a node has and exchanges, in half a sentence
  std::string_view runs_with;  ///< what runs it: the program, or a class and its header
  /// The ways to follow it on so many nodes, rows and gradients in `compressor`. Throws Error where
  /// the model, or the number of nodes, does not have it.
  std::vector<StrategyWay> (*ways)(const ModelShape& model, int nodes,
                                   const std::string& compressor);
};

/// All strategies, data parallelism first.
std::span<const Strategy* const> strategies();

/// Floats of a node that has all of `parameters`: these, their gradient and the step rule's state.
double held_floats(const ModelShape& model, std::size_t parameters);

}  // namespace sotto::study
