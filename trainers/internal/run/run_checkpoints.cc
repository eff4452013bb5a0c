#include "run_checkpoints.h"

#include <utility>

#include <sotto/base/error.h>

#include "resume.h"

namespace sotto::internal {

RunCheckpoints::RunCheckpoints(const RunOptions& options)
    : folder_(options.checkpoint, options.optimizer.rank), rounds_(options.rounds) {
  if (!options.resume && !folder_.rounds().empty()) {
    refuse("checkpoint", options.checkpoint,
           "it holds an earlier run; go on from it with " + mention("resume", "true") +
               ", or name another folder");
  }
}

Status RunCheckpoints::save(const Optimizer& optimizer, const RunState& run) {
  ByteBuffer optimizer_state;
  optimizer.save(optimizer_state);
  ByteBuffer run_state;
  write_run_state(run, run_state);
  Checkpoint checkpoint;
  checkpoint.rank = optimizer.options().rank;
  checkpoint.nodes = optimizer.options().nodes;
  checkpoint.round = optimizer.round();
  checkpoint.agreement = optimizer.agreement();
  checkpoint.optimizer = std::move(optimizer_state).take();
  checkpoint.run = std::move(run_state).take();
  Status status = folder_.write(checkpoint, saved_);
  saved_ = checkpoint.round;
  return status;
}

Result<RunState> RunCheckpoints::resume(Optimizer& optimizer, StoreCollectives& collectives,
                                        const std::function<void(const std::string&)>& warning) {
  const auto round = agree_on_round(folder_, optimizer.agreement(), rounds_, collectives, warning);
  return round.ok() ? load(*round, optimizer) : round.status();
}

Result<RunState> RunCheckpoints::load(Round round, Optimizer& optimizer) {
  const auto checkpoint = folder_.read(round);
  if (!checkpoint.ok()) {
    return checkpoint.status();
  }
  ByteReader saved(checkpoint->optimizer);
  if (Status status = optimizer.load(saved); !status.ok()) {
    return status.with_context("resuming");
  }
  ByteReader run(checkpoint->run);
  auto state = read_run_state(run);
  if (!state.ok() || !saved.finished() || optimizer.round() != round) {
    return Status(Fault::malformed, "resuming: the checkpoint's parts do not fit together");
  }
  saved_ = round;
  return state;
}

}  // namespace sotto::internal
