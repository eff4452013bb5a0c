#include <sotto/trainers/run.h>

#include <algorithm>
#include <exception>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/base/start_threads.h>

#include "internal/run/node_run.h"

namespace sotto {

using internal::NodeRun;

Result<RunResult> run_node(const RunOptions& options, Task& task, const RunHooks& hooks) {
  NodeRun run(options, task, hooks);
  return run.run();
}

Result<RunResult> run_threads(const RunOptions& options, const TaskOfNode& tasks,
                              const RunHooks& hooks) {
  check_local_nodes(options.optimizer.nodes);
  const auto nodes = static_cast<std::size_t>(options.optimizer.nodes);
  RunOptions shared = options;
  shared.optimizer.transport = "inproc";
  shared.optimizer.store = make_memory_store();
  std::vector<std::unique_ptr<Task>> task_of(nodes);
  std::vector<std::unique_ptr<NodeRun>> runs(nodes);
  for (std::size_t rank = 0; rank < nodes; ++rank) {
    shared.optimizer.rank = static_cast<Rank>(rank);
    task_of[rank] = tasks(shared.optimizer.rank);
    runs[rank] = std::make_unique<NodeRun>(shared, *task_of[rank], hooks);
  }
  std::vector<Status> faults(nodes);
  std::vector<std::exception_ptr> errors(nodes);
  RunResult result;
  run_side_by_side(nodes, "nodes", [&](std::size_t rank) {
    try {
      auto outcome = runs[rank]->run();
      faults[rank] = outcome.status();
      if (rank == 0 && outcome.ok()) {
        result = std::move(*outcome);
      }
    } catch (...) {
      errors[rank] = std::current_exception();
    }
    runs[rank].reset();  // neighbours that still wait for this node notice at once
  });
  for (const std::exception_ptr& error : errors) {
    if (error) {
      std::rethrow_exception(error);
    }
  }
  if (Status cause = root_cause(faults); !cause.ok()) {
    return cause;
  }
  return result;
}

void check_local_nodes(int nodes) {
  if (nodes < 1 || nodes > kMostLocalNodes) {
    refuse("nodes", fmt::to_string(nodes),
           fmt::format("1 to {} can run on one host; the simulator takes more", kMostLocalNodes));
  }
}

Status root_cause(std::span<const Status> faults) {
  const auto rank_of = [](const Status& status) {
    switch (status.fault()) {
      case Fault::none:
        return 3;
      case Fault::peer_lost:
        return 2;
      case Fault::deadline:
        return 1;
      default:
        return 0;
    }
  };
  const auto cause =
      std::min_element(faults.begin(), faults.end(),
                       [&](const Status& a, const Status& b) { return rank_of(a) < rank_of(b); });
  return cause == faults.end() ? Status() : *cause;
}

}  // namespace sotto
