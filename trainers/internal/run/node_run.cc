#include "node_run.h"

#include <algorithm>
#include <exception>
#include <limits>

#include <fmt/format.h>

#include <sotto/base/digest.h>
#include <sotto/base/error.h>
#include <sotto/comm/run_keys.h>
#include <sotto/trainers/files/durable_file.h>
#include <sotto/trainers/files/parameter_file.h>

#include "../optimizer/run_access.h"
#include "../reporting/phases.h"
#include "resume.h"
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
  folder_.emplace(options.checkpoint, rank_);
  if (!options.resume && !folder_->rounds().empty()) {
    refuse("checkpoint", options.checkpoint,
           "it holds an earlier run; go on from it with " + mention("resume", "true") +
               ", or name another folder");
  }
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
  Status status = optimizer_.connect();
  if (status.ok() && options_.resume) {
    status = resume();
  }
  if (status.ok()) {
    status = agree_on_end();
  }
  if (status.ok()) {
    // Connecting takes some nodes longer than others: that is no part of anybody's training.
    status = collectives_.barrier(kBeginBarrier);
  }
  if (status.ok()) {
    tell_start();
  }
  wall_.go();
  if (status.ok() && optimizer_.round() == end_) {
    status = evaluate(true);  // the checkpoint was the end already
  }
  while (status.ok() && optimizer_.round() < end_) {
    status = one_round();
  }
  wall_.pause();
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
  if (folder_ && saved_ != optimizer_.round()) {
    if (Status status = save(); !status.ok()) {
      return status;
    }
  }
  (void)collectives_.barrier("stopped");  // nobody leaves while a neighbour still saves
  return folder_ ? Status(Fault::ended,
                          fmt::format("{}; round {} is saved in {}", optimizer_.end_reason(),
                                      optimizer_.round(), folder_->path()))
                 : ended;
}

Status NodeRun::one_round() {
  if (!folder_ && hooks_.stop != nullptr && *hooks_.stop) {
    return {Fault::peer_lost, fmt::format("node {} was told to stop", rank_)};
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
  if (status.ok() && folder_ && due(options_.checkpoint_every)) {
    status = save();
  }
  return status;
}

void NodeRun::tell_warnings() {
  const std::vector<std::string>& warnings = optimizer_.warnings();
  for (; warned_ < warnings.size(); ++warned_) {
    if (Observer* observer = node_0_observer()) {
      observer->warning(warnings[warned_]);
    }
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

Status NodeRun::evaluate(bool last) {
  const ScopedPhase whole(hooks_.observer, rank_, RunPhase::evaluation, last_round());
  if (Status status = optimizer_.drain(); !status.ok()) {
    return status;
  }
  wall_.pause();
  if (Observer* observer = node_0_observer()) {
    observer->evaluation_began(optimizer_.round());
  }
  Status unread;
  const auto inspect = [&](const AveragedModel& model) { unread = take_average(model); };
  const auto visit = [&](Rank rank, std::span<const float> x) { take_row(rank, x); };
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
  if (status.ok() && last && rank_ == 0 && !options_.dump_parameters.empty()) {
    // A full disk takes neither the result nor the checkpoint away.
    dumped_ = write_durably(options_.dump_parameters, std::as_bytes(std::span(rows_)));
  }
  wall_.go();
  return status;
}

Status NodeRun::take_average(const AveragedModel& model) {
  const Evaluation found = task_.evaluate(model.parameters);
  HistoryPoint point;
  point.round = optimizer_.round();
  point.time_s = wall_.seconds();
  set_quality(point, found);
  point.consensus_distance = model.consensus_distance;
  point.bytes_per_node = model.bytes_per_node;
  if (history_.empty() || history_.back().round != point.round) {
    history_.push_back(point);
  }
  Observer* observer = node_0_observer();
  if (observer == nullptr) {
    return {};
  }
  RunEvaluation evaluation{.point = point};
  evaluation.allreduce_bytes =
      allreduce_bytes(optimizer_.options().nodes, parameters_.size(), point.round);
  const bool all_tell = std::all_of(model.notes.begin(), model.notes.end(),
                                    [](const auto& note) { return !note.empty(); });
  if (health_ && all_tell) {
    auto nodes = read_standings(model.notes);
    if (!nodes.ok()) {
      return nodes.status();
    }
    evaluation.nodes = std::move(*nodes);
    evaluation.complete = true;
    evaluation.compression = compression_of(evaluation.nodes);
  }
  observer->evaluated(evaluation);
  return {};
}

void NodeRun::take_row(Rank /*rank*/, std::span<const float> parameters) {
  digests_.push_back(sha256_hex(std::as_bytes(parameters)));
  if (!options_.dump_parameters.empty()) {
    rows_ += parameter_row(parameters);
  }
}

Status NodeRun::save() {
  const ScopedPhase whole(hooks_.observer, rank_, RunPhase::checkpoint, last_round());
  if (Status status = optimizer_.drain(); !status.ok()) {
    return status;
  }
  wall_.pause();
  ByteBuffer optimizer;
  optimizer_.save(optimizer);
  ByteBuffer run;
  write_run_state({wall_.seconds(), compute_.seconds(), history_}, run);
  Checkpoint checkpoint;
  checkpoint.rank = rank_;
  checkpoint.nodes = optimizer_.options().nodes;
  checkpoint.round = optimizer_.round();
  checkpoint.agreement = optimizer_.agreement();
  checkpoint.optimizer = std::move(optimizer).take();
  checkpoint.run = std::move(run).take();
  Status status = folder_->write(checkpoint, saved_);
  saved_ = checkpoint.round;
  wall_.go();
  return status;
}

Status NodeRun::resume() {
  const auto warn = [this](const std::string& text) {
    if (Observer* observer = node_0_observer()) {
      observer->warning(text);
    }
  };
  const auto round =
      agree_on_round(*folder_, optimizer_.agreement(), options_.rounds, collectives_, warn);
  return round.ok() ? load(*round) : round.status();
}

Status NodeRun::load(Round round) {
  const auto checkpoint = folder_->read(round);
  if (!checkpoint.ok()) {
    return checkpoint.status();
  }
  ByteReader optimizer(checkpoint->optimizer);
  if (Status status = optimizer_.load(optimizer); !status.ok()) {
    return status.with_context("resuming");
  }
  ByteReader run(checkpoint->run);
  auto state = read_run_state(run);
  if (!state.ok() || !optimizer.finished() || optimizer_.round() != round) {
    return {Fault::malformed, "resuming: the checkpoint's parts do not fit together"};
  }
  wall_.set(state->wall_s);
  compute_.set(state->compute_s);
  history_ = std::move(state->history);
  saved_ = round;
  return {};
}

Status NodeRun::agree_on_end() {
  const auto privacy = optimizer_.privacy();
  if (!privacy || !optimizer_.options().privacy->epsilon) {
    return {};
  }
  ByteBuffer mine;
  mine.write(optimizer_.round() + privacy->left);
  const auto all = collectives_.gather("privacy", mine.bytes());
  if (!all.ok()) {
    return all.status();
  }
  for (const auto& bytes : *all) {
    end_ = std::min(end_, ByteReader(bytes).read<Round>());
  }
  ByteBuffer decided;
  decided.write(end_);
  const auto answer = collectives_.broadcast("privacy-end", decided.bytes());
  if (!answer.ok()) {
    return answer.status();
  }
  end_ = ByteReader(*answer).read<Round>();
  if (end_ < optimizer_.round()) {
    return {Fault::malformed, "the round at which the privacy budget is spent has passed"};
  }
  if (Observer* observer = node_0_observer(); observer != nullptr && end_ < options_.rounds) {
    observer->warning(
        fmt::format("the privacy budget is spent after round {}: the run ends there", end_));
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
  result.history = std::move(history_);
  result.final = result.history.back();
  result.parameters_sha256 = std::move(digests_);
  result.dumped = dumped_;
  const auto nodes = read_standings(*all);
  if (!nodes.ok()) {
    return nodes.status();
  }
  add_standings(*nodes, result);
  return result;
}

}  // namespace sotto::internal
