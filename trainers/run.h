// A training run: a task, an optimizer, evaluations and checkpoints, as one node of a job or as all
// nodes of a local one.
//
// Thread safety: a run belongs to its thread; observer.h says on which its observer is called.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <sotto/base/status.h>
#include <sotto/trainers/observer.h>
#include <sotto/trainers/optimizer.h>
#include <sotto/trainers/result.h>
#include <sotto/trainers/tasks/task.h>

namespace sotto {

/// A run's settings: the optimizer's, its length, evaluations, checkpoints.
struct RunOptions {
  OptimizerOptions optimizer;
  /// Weight of each node's data (optimizer.weight), by rank; empty: optimizer.weight for all.
  std::vector<double> weights;
  Round rounds = 1;
  /// Rounds from one evaluation of the averaged model to the next; there is one at the end; 0: only
  /// then.
  Round eval_every = 0;
  /// Parameters to start from; empty: the task's own.
  std::vector<float> start;
  /// Folder of checkpoints; empty: none.
  std::string checkpoint;
  /// Rounds from one checkpoint of all nodes to the next; there is one at the end; 0: only then.
  Round checkpoint_every = 0;
  /// Go on from the newest round of which all nodes have a whole checkpoint.
  bool resume = false;
  /// Node 0 writes the final models here, a row a node (parameter_file.h); empty: nowhere.
  std::string dump_parameters;
};

/// The run's observer, and how the caller can stop it. Both may be null.
struct RunHooks {
  Observer* observer = nullptr;
  /// Once true at one node, all end. With checkpoints they finish the round that the furthest has
  /// begun, save it, and return Fault::ended with the node that was told, the round and the folder;
  /// without, it ends at once with Fault::stopped, and the others with a fault that names it.
  const std::atomic<bool>* stop = nullptr;
};

/// One node's run. Node 0 gets the result, the others an empty one. Throws Error for a wrong
/// request.
Result<RunResult> run_node(const RunOptions& options, Task& task, const RunHooks& hooks);

/// Nodes of a local job, threads or processes: one host has room for no more. The simulator takes
/// tens of thousands.
inline constexpr int kMostLocalNodes = 1024;

/// The task of each node.
using TaskOfNode = std::function<std::unique_ptr<Task>(Rank)>;

/// All nodes as threads of this process, over inproc. options.optimizer needs only `nodes`, at most
/// kMostLocalNodes.
Result<RunResult> run_threads(const RunOptions& options, const TaskOfNode& tasks,
                              const RunHooks& hooks);

/// Throws Error unless a local job may have `nodes` nodes.
void check_local_nodes(int nodes);

/// The one of several nodes' faults that explains the others. A deadline is blamed only if
/// all other faults are lost peers, which may have left because of it. OK when all are.
Status root_cause(std::span<const Status> faults);

}  // namespace sotto
