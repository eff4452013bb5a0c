// One node's training run (run.h): its rounds, what happens between them, and the result in the
// end. Belongs to one thread; owns the parameters and the optimizer.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <sotto/trainers/meetings/model_average.h>
#include <sotto/trainers/meetings/store_collectives.h>
#include <sotto/trainers/run.h>

#include "../reporting/stopwatch.h"
#include "evaluations.h"
#include "run_checkpoints.h"

namespace sotto::internal {

class NodeRun {
 public:
  /// Refuses (Error) whatever this node can see to be wrong alone, before any node waits for it.
  NodeRun(const RunOptions& options, Task& task, const RunHooks& hooks);

  /// Whatever ends it, also an exception, the others are told why, and the observer that it has.
  Result<RunResult> run();

 private:
  Result<RunResult> run_to_end();
  /// Meets the others, takes up the checkpoint if there is one, and agrees with them on the end.
  Status begin();
  /// Rounds, and what is between them, until the end or a fault.
  Status all_rounds();
  /// Node 0's observer, which is told what happens; null on other nodes, and where there is none.
  Observer* node_0_observer() const { return rank_ == 0 ? hooks_.observer : nullptr; }
  void tell_start();
  /// Has compression measured in the round before the next evaluation, if it is time.
  void measure_compression();
  NodeStanding standing() const;
  /// The round that has just ended, for a phase behind it; before the first round, that one.
  Round last_round() const;
  Status step();
  /// Tells the others why this node ends, or learns from them why it must.
  Status explain(const Status& fault);
  Status one_round();
  void warn(const std::string& text);
  /// Passes on what the optimizer has warned of since the last call.
  void tell_warnings();
  /// The nodes have agreed to end here: saves what can be saved. Fault::ended, with why.
  Status end_early(const Status& ended);
  /// Drains, stops the clock and makes this node's model whole, for what looks at it.
  Status rest();
  Status evaluate(bool last);
  Status save();
  Status resume();
  /// Finds the round after which no node may go on: the last one asked for, or that of the node
  /// which spends its privacy budget first.
  Status agree_on_end();
  Result<RunResult> conclude();
  bool due(Round every) const;

  const RunOptions options_;
  Task& task_;
  const RunHooks hooks_;
  const Rank rank_;
  std::vector<float> parameters_;
  std::vector<float> gradient_;
  const bool health_;  ///< an observer wants to know how the nodes stand
  Optimizer optimizer_;
  StoreCollectives& collectives_;              ///< those of the optimizer
  ModelAverage& average_;                      ///< average of the optimizer
  std::optional<RunCheckpoints> checkpoints_;  ///< none where the run has no folder
  Round end_;                                  ///< rounds in all
  Evaluations evaluations_;
  std::size_t warned_;  ///< number of the optimizer's warnings that are told

  Stopwatch wall_;
  Stopwatch compute_;
};

}  // namespace sotto::internal
