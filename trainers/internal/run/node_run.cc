#include "node_run.h"

#include <algorithm>
#include <exception>
#include <limits>

#include <fmt/format.h>

#include <sotto/base/durable_file.h>
#include <sotto/base/error.h>
#include <sotto/comm/run_keys.h>

#include "../optimizer/run_access.h"
#include "../reporting/phases.h"
#include "../reporting/standing_bytes.h"
#include "privacy_end.h"
#include "run_state.h"

namespace sotto::internal {
namespace {

std::vector<float> initial_parameters(const RunOptions& options, const Task& task) {
  std::vector<float> x(task.dimension());
  if (options.start.empty()) {
    task.initialize(x, options.optimizer.seed);
    return x;
  }
  if (options.start.size() != x.size()) {
    refuse("start", fmt::format("{} parameters", options.start.size()),
           fmt::format("the model has {}", x.size()));
  }
  return options.start;
}

/// Adds the ledger of the node's privacy budget beside its checkpoints, and what observers want.
OptimizerOptions completed(const RunOptions& run, const RunHooks& hooks) {
  OptimizerOptions options = run.optimizer;
  Observer* const observer = hooks.observer;
  options.observer = observer;
  options.report_every = 0;  // evaluations tell more
  if (!run.weights.empty()) {
    options.weight = run.weights.at(static_cast<std::size_t>(options.rank));
  }
  if (!run.checkpoint.empty()) {
    options.stop = hooks.stop;  // all save the same round
  } else if (hooks.stop != nullptr) {
    options.interrupted = [stop = hooks.stop] { return stop->load(); };
  }
  options.metered = observer != nullptr && observer->wants_health();
  if (options.privacy && options.privacy->ledger.empty() && !run.checkpoint.empty()) {
    options.privacy->ledger = fmt::format("{}/node-{}.privacy", run.checkpoint, options.rank);
  }
  return options;
}

}  // namespace

NodeRun::NodeRun(const RunOptions& options, Task& task, const RunHooks& hooks)
    : options_(options),
      task_(task),
      hooks_(hooks),
      rank_(options.optimizer.rank),
      parameters_(initial_parameters(options, task)),
      gradient_(parameters_.size()),
      health_(hooks.observer != nullptr && hooks.observer->wants_health()),
      optimizer_(completed(options, hooks), parameters_, task.layout()),
      collectives_(RunAccess::collectives(optimizer_)),
      average_(RunAccess::average(optimizer_)),
      end_(options.rounds),
      evaluations_(task, node_0_observer(), options.dump_parameters),
      warned_(optimizer_.warnings().size()) {
  if (options.rounds < 1) {
    refuse("rounds", "0", "at least one is needed");
  }
  if (const std::string& dump = options.dump_parameters; rank_ == 0 && !dump.empty()) {
    if (const Status status = check_replaceable(dump); !status.ok()) {
      refuse("dump_parameters", dump, status.message());
    }
  }
  if (options.checkpoint.empty()) {
    if (options.resume) {
      throw Error("resume", "name the folder of the checkpoints with " + mention("checkpoint"));
    }
    return;
  }
  checkpoints_.emplace(options);
}

Result<RunResult> NodeRun::run() {
  std::exception_ptr thrown;
  auto result = [&]() -> Result<RunResult> {
    try {
      return run_to_end();
    } catch (const std::exception& error) {
      thrown = std::current_exception();
      return explain(Status(Fault::io, fmt::format("node {}: {}", rank_, error.what())));
    }
  }();
  if (hooks_.observer != nullptr) {
    hooks_.observer->node_ended(rank_);
  }
  if (thrown) {
    std::rethrow_exception(thrown);
  }
  return result;
}

Result<RunResult> NodeRun::run_to_end() {
  Status status = begin();
  if (status.ok()) {
    status = all_rounds();
  }
  if (status.fault() == Fault::ended) {
    status = end_early(status);
  }
  if (status.fault() == Fault::ended) {
    return status;
  }
  if (!status.ok()) {
    return explain(status);
  }
  auto result = conclude();
  return result.ok() ? result : Result<RunResult>(explain(result.status()));
}

Status NodeRun::begin() {
  if (Status status = optimizer_.connect(); !status.ok()) {
    return status;
  }
  if (options_.resume) {
    if (Status status = resume(); !status.ok()) {
      return status;
    }
  }
  if (Status status = agree_on_end(); !status.ok()) {
    return status;
  }
  // Connecting takes some nodes longer than others: that is no part of anybody's training.
  if (Status status = collectives_.barrier(kBeginBarrier); !status.ok()) {
    return status;
  }
  tell_start();
  return {};
}

Status NodeRun::all_rounds() {
  wall_.go();
  Status status;
  if (optimizer_.round() == end_) {
    status = evaluate(true);  // the checkpoint was the end already
  }
  while (status.ok() && optimizer_.round() < end_) {
    status = one_round();
  }
  wall_.pause();
  return status;
}

void NodeRun::tell_start() {
  measure_compression();
  if (Observer* observer = node_0_observer()) {
    observer->began({.nodes = optimizer_.options().nodes,
                     .done = optimizer_.round(),
                     .rounds = end_,
                     .rounds_per_epoch = task_.rounds_per_epoch(),
                     .dimension = parameters_.size()});
  }
}

void NodeRun::measure_compression() {
  const Round done = optimizer_.round();
  const Round every = options_.eval_every;
  RunAccess::compression(optimizer_)
      .measure_before(every == 0 ? end_ : std::min(end_, (done / every + 1) * every));
}

Round NodeRun::last_round() const { return std::max<Round>(1, optimizer_.round()) - 1; }

NodeStanding NodeRun::standing() const {
  NodeStanding standing = optimizer_.standing();
  standing.wall_s = wall_.seconds();
  standing.compute_s = compute_.seconds();
  return standing;
}

Status NodeRun::explain(const Status& fault) { return optimizer_.give_up(fault); }

bool NodeRun::due(Round every) const {
  return optimizer_.round() == end_ || (every > 0 && optimizer_.round() % every == 0);
}

Status NodeRun::end_early(const Status& ended) {
  if (checkpoints_ && checkpoints_->saved() != optimizer_.round()) {
    if (Status status = save(); !status.ok()) {
      return status;
    }
  }
  (void)collectives_.barrier("stopped");  // nobody leaves while a neighbour still saves
  return checkpoints_ ? Status(Fault::ended,
                               fmt::format("{}; round {} is saved in {}", optimizer_.end_reason(),
                                           optimizer_.round(), checkpoints_->folder()))
                      : ended;
}

Status NodeRun::one_round() {
  if (!checkpoints_ && hooks_.stop != nullptr && *hooks_.stop) {
    return {Fault::stopped, std::string(kStopped)};
  }
  Status status = step();
  tell_warnings();
  if (!status.ok()) {
    return status;
  }
  if (Observer* observer = node_0_observer()) {
    observer->round_done(optimizer_.round());
  }
  if (due(options_.eval_every)) {
    status = evaluate(optimizer_.round() == end_);
  }
  if (status.ok() && checkpoints_ && due(options_.checkpoint_every)) {
    status = save();
  }
  return status;
}

void NodeRun::tell_warnings() {
  const std::vector<std::string>& warnings = optimizer_.warnings();
  for (; warned_ < warnings.size(); ++warned_) {
    warn(warnings[warned_]);
  }
}

void NodeRun::warn(const std::string& text) {
  if (Observer* observer = node_0_observer()) {
    observer->warning(text);
  }
}

Status NodeRun::step() {
  if (Status status = optimizer_.begin_step(); !status.ok()) {
    return status;
  }
  compute_.go();
  task_.loss_and_gradient(optimizer_.round(), optimizer_.parameters(), gradient_);
  compute_.pause();
  return optimizer_.step(gradient_);
}

Status NodeRun::rest() {
  if (Status status = optimizer_.drain(); !status.ok()) {
    return status;
  }
  wall_.pause();
  return RunAccess::bring_together(optimizer_);
}

Status NodeRun::evaluate(bool last) {
  const ScopedPhase whole(hooks_.observer, rank_, RunPhase::evaluation, last_round());
  if (Status status = rest(); !status.ok()) {
    return status;
  }
  if (Observer* observer = node_0_observer()) {
    observer->evaluation_began(optimizer_.round());
  }
  Status unread;
  const auto inspect = [&](const AveragedModel& model) {
    unread = evaluations_.take_average(model, optimizer_.round(), wall_.seconds(),
                                       optimizer_.options().nodes);
  };
  const auto visit = [&](Rank /*rank*/, std::span<const float> x) { evaluations_.take_row(x); };
  ByteBuffer note;
  if (health_) {
    write_standing(standing(), note);
  }
  Status status = average_.meet(optimizer_.round(), optimizer_.parameters(),
                                static_cast<std::uint64_t>(sent_bytes(optimizer_.standing())),
                                inspect, last ? ModelAverage::Visit(visit) : nullptr, note.bytes());
  if (status.ok()) {
    status = unread;
    measure_compression();
  }
  if (status.ok() && last && rank_ == 0) {
    evaluations_.dump_rows();
  }
  wall_.go();
  return status;
}

Status NodeRun::save() {
  const ScopedPhase whole(hooks_.observer, rank_, RunPhase::checkpoint, last_round());
  if (Status status = rest(); !status.ok()) {
    return status;
  }
  Status status =
      checkpoints_->save(optimizer_, {wall_.seconds(), compute_.seconds(), evaluations_.history()});
  wall_.go();
  return status;
}

Status NodeRun::resume() {
  auto state = checkpoints_->resume(optimizer_, collectives_,
                                    [this](const std::string& text) { warn(text); });
  if (!state.ok()) {
    return state.status();
  }
  wall_.set(state->wall_s);
  compute_.set(state->compute_s);
  evaluations_.go_on_from(std::move(state->history));
  return {};
}

Status NodeRun::agree_on_end() {
  const auto end = agree_on_privacy_end(optimizer_, collectives_, options_.rounds);
  if (!end.ok()) {
    return end.status();
  }
  end_ = *end;
  if (end_ < options_.rounds) {
    warn(fmt::format("the privacy budget is spent after round {}: the run ends there", end_));
  }
  return {};
}

Result<RunResult> NodeRun::conclude() {
  ByteBuffer mine;
  write_standing(standing(), mine);
  const auto all = collectives_.gather("summary", mine.bytes());
  if (!all.ok()) {
    return all.status();
  }
  if (Status status = optimizer_.finish(); !status.ok()) {
    return status;
  }
  RunResult result;
  if (rank_ != 0) {
    return result;
  }
  result.nodes = optimizer_.options().nodes;
  result.rounds = end_;
  result.dimension = parameters_.size();
  evaluations_.move_into(result);
  const auto nodes = read_standings(*all);
  if (!nodes.ok()) {
    return nodes.status();
  }
  add_standings(*nodes, result);
  return result;
}

}  // namespace sotto::internal
