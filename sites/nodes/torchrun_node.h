// A worker of torchrun's as a node of a run whose nodes come and go: where it finds the others, and
// what its name begins with, by the variables that the agent has set (docs/epochs.md, "Under
// torchrun"). Pure functions of the environment; thread-safe while no thread changes it.
#pragma once

#include <optional>
#include <string>

#include <sotto/trainers/launch/launcher.h>

namespace sotto {

/// What torchrun says to a node.
struct TorchrunNode {
  /// RosterSettings::seeds: the store that an agent serves, under TORCHELASTIC_RUN_ID; or where
  /// agents leave MASTER_PORT to the workers MASTER_ADDR and MASTER_PORT, which the node that has
  /// them takes. All workers of a group have the same.
  std::string seeds;
  /// "w1.2": LOCAL_RANK and TORCHELASTIC_RESTART_COUNT, for default_node_name(). No name by itself,
  /// as a host may have several agents.
  std::string worker;
  /// The agent starts its workers again when one fails (TORCHELASTIC_MAX_RESTARTS above 0).
  bool restarts = false;
};

/// What torchrun says to this process; none: no agent of torchrun's has started it
/// (TORCHELASTIC_RUN_ID is not set). Throws Error, by the variable's name, where one is no number
/// or contradicts another, and where MASTER_ADDR, RANK or WORLD_SIZE is missing.
std::optional<TorchrunNode> read_torchrun();
/// What given variables say, for tests.
std::optional<TorchrunNode> read_torchrun(const Environment& environment);

}  // namespace sotto
