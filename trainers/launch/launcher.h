// Which node of a launched job this process is, read from the variables that torchrun, mpirun, srun
// or a script set. Pure functions of the environment; thread-safe while no thread changes it.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include <sotto/base/ids.h>

namespace sotto {

/// The place of a process in a launched job.
struct LaunchedNode {
  Rank rank = 0;
  int nodes = 1;
  /// The URL where the nodes meet: of a store that node 0 is to serve, `tcp://HOST:PORT`, or the
  /// store that torchrun's agent serves, `torch://HOST:PORT/RUN`; empty when the variables do not
  /// say.
  std::string rendezvous;
  std::string source;  ///< names of the variables that gave the place, for messages
};

/// Reads a variable; null when it is not set.
using Environment = std::function<const char*(const char*)>;

/// Looks, in this order, for RANK and WORLD_SIZE, for OMPI_COMM_WORLD_RANK and _SIZE (Open MPI),
/// PMI_RANK and PMI_SIZE (MPICH and its derivatives), SLURM_PROCID and SLURM_NTASKS, and then for
/// MASTER_ADDR and MASTER_PORT (29500 when not set). A job with all nodes on this host, as the
/// launcher says, needs no MASTER_ADDR. Where torchrun's agent says that it serves a store there
/// itself (TORCHELASTIC_USE_AGENT_STORE), the nodes meet in that one, under TORCHELASTIC_RUN_ID.
/// TORCHELASTIC_RESTART_COUNT is not looked at, as agents of one group may count differently: that
/// nodes meet those of now is the session's business (comm/session.h). Throws Error when a variable
/// is no number, when only one of RANK and WORLD_SIZE is set, when the rank is not below the size,
/// or when two of the first three contradict each other: but torchrun (LOCAL_WORLD_SIZE) may have
/// been started by another launcher, and any of them in a job of one process.
std::optional<LaunchedNode> read_launcher();
/// The place that given variables say, for tests.
std::optional<LaunchedNode> read_launcher(const Environment& environment);

/// read_launcher(), for a program that was not told its place. Throws Error (this field) unless a
/// launcher gave one, in a job of `nodes` nodes; 0: of any number. The advice begins with
/// `instead`, what sets the place without a launcher.
LaunchedNode launched_node(std::string_view field, std::string_view instead, int nodes = 0);

}  // namespace sotto
