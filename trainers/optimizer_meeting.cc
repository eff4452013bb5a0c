// Where all nodes of a run come together once it is under way: for their mean, and at the end.
#include <sotto/trainers/optimizer.h>

#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/kernels/vector.h>
#include <sotto/trainers/meeting.h>

#include "internal/in_turn.h"
#include "internal/refusal.h"
#include "internal/run_watch.h"

namespace sotto {
namespace {

/// Ends in a word, as a number would be the node that alone may read it
/// (comm/internal/store_rules.h).
std::string mean_key(std::uint64_t number) { return fmt::format("mean/{}/model", number); }

/// "node 3: …", "node 3, round 7: …"
bool says_who(std::string_view message) {
  constexpr std::string_view kNode = "node ";
  return message.starts_with(kNode) && message.size() > kNode.size() &&
         message[kNode.size()] >= '0' && message[kNode.size()] <= '9';
}

}  // namespace

Status Optimizer::ended_by(Status fault) {
  if (fault.ok() || !status_.ok()) {
    return status_;
  }
  refused_ = Status();
  status_ = std::move(fault);
  if (entered_ && !finished_) {
    const bool of_others =
        status_.fault() == Fault::peer_lost || status_.fault() == Fault::deadline;
    Meetings meetings(*session_, options_.rank, options_.nodes, options_.timeout);
    const Status cause = meetings.given_up_or(status_);
    if (of_others && !cause.ok()) {
      // A gradient that was refused is for another one to follow only where it was taken.
      status_ = internal::is_refusal(cause) ? Status(Fault::peer_lost, cause.message()) : cause;
    }
  }
  end_report();
  return status_;
}

Status Optimizer::give_up(const Status& cause) {
  if (!status_.ok() || finished_ || cause.ok()) {
    return status_;
  }
  return ended_by(says_who(cause.message()) ? cause : named(cause));
}

Result<double> Optimizer::mean_model(std::span<float> mean) {
  require_whole_step();
  if (mean.size() != parameters_.size()) {
    refuse("mean", fmt::format("{} elements", mean.size()),
           fmt::format("the parameters have {}", parameters_.size()));
  }
  Status status = connect();
  if (status.ok()) {
    status = drain();
  }
  if (!status.ok()) {
    return status;
  }
  std::vector<float> room;
  std::span<const float> mine;
  {
    const internal::InTurn turn(options_.accelerator.get());
    mine = on_host(parameters_, ops(), room);
  }
  if (Status fault = accelerator_status(); !fault.ok()) {
    return ended_by(named(fault));
  }
  Meetings meetings(*session_, options_.rank, options_.nodes, options_.timeout);
  meetings.leave_out(options_.byzantine);
  ByteBuffer found;
  status = meetings.meet(means_, mine, 0, [&](const AveragedModel& all) {
    forget_mean();
    found.write(all.consensus_distance);
    found.write_span(std::span<const float>(all.parameters));
  });
  if (!status.ok()) {
    return ended_by(status);
  }
  const auto told = meetings.broadcast(mean_key(means_), found.bytes());
  if (!told.ok()) {
    return ended_by(told.status());
  }
  ByteReader in(*told);
  ++means_;
  mean_ = Mean{round_, in.read<double>()};
  if (!in.read_into(mean) || !in.finished()) {
    return ended_by(named({Fault::malformed, "the mean model has another number of parameters"}));
  }
  if (watch_ && !begun_) {
    watch_->clock.leave();  // what this took is nobody's gradient
  }
  return mean_->consensus_distance;
}

void Optimizer::forget_mean() {
  if (options_.rank == 0 && mean_) {
    (void)session_->remove(mean_key(means_ - 1));
  }
}

Status Optimizer::finish() {
  require_whole_step();
  if (Status status = drain(); !status.ok()) {
    return status;
  }
  if (watch_ && watch_->reporter) {
    watch_->reporter->leave(standing(), options_.timeout);
  }
  Meetings meetings(*session_, options_.rank, options_.nodes, options_.timeout);
  if (Status status = meetings.barrier("end"); !status.ok()) {
    return ended_by(status);
  }
  forget_mean();
  finished_ = true;
  refused_ = Status();
  end_report();
  return {};
}

}  // namespace sotto
