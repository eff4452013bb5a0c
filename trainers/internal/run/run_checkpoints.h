// The checkpoints of one node in a whole run: when there are any, what they hold beside the
// optimizer, and how a resumed run finds back into them. Belongs to one thread.
#pragma once

#include <functional>
#include <string>

#include <sotto/trainers/files/checkpoint.h>
#include <sotto/trainers/meetings/store_collectives.h>
#include <sotto/trainers/optimizer.h>
#include <sotto/trainers/run.h>

#include "run_state.h"

namespace sotto::internal {

class RunCheckpoints {
 public:
  /// Requires options.checkpoint, and makes that folder. Refuses (Error) one that holds an earlier
  /// run, unless it is to go on.
  explicit RunCheckpoints(const RunOptions& options);

  const std::string& folder() const { return folder_.path(); }
  /// The round of the last checkpoint that was written or loaded; 0: none.
  Round saved() const { return saved_; }

  /// Writes the state after the optimizer's round, which has been drained.
  Status save(const Optimizer& optimizer, const RunState& run);
  /// Finds with the other nodes the newest round that all have, gives it to the optimizer and
  /// returns what the run was at. All nodes call it. Throws Error as agree_on_round does, and
  /// `warning` hears of files that are passed over.
  Result<RunState> resume(Optimizer& optimizer, StoreCollectives& collectives,
                          const std::function<void(const std::string&)>& warning);

 private:
  Result<RunState> load(Round round, Optimizer& optimizer);

  CheckpointFolder folder_;
  const Round rounds_;
  Round saved_ = 0;
};

}  // namespace sotto::internal
