// Where all nodes of a run come together once it is under way: for their mean, and at the end.
#include <sotto/trainers/optimizer.h>

#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/kernels/vector.h>
#include <sotto/trainers/meeting.h>

#include "internal/consensus.h"
#include "internal/in_turn.h"
#include "internal/refusal.h"
#include "internal/run_watch.h"

namespace sotto {
namespace {

/// Ends in a word, as a number would be the node that alone may read it
/// (comm/zmq/store/store_rules.h).
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
    const Status cause = consensus_->meetings().given_up_or(status_);
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

void Optimizer::require_length_of_mean(std::span<const float> mean) const {
  if (!mean.empty() && mean.size() != parameters_.size() + carried_.size()) {
    refuse("mean", fmt::format("{} elements", mean.size()),
           fmt::format(
               "the parameters have {}{}", parameters_.size(),
               carried_.empty() ? "" : fmt::format(", and {} values go along", carried_.size())));
  }
}

void Optimizer::carry_along(std::span<const float> values) {
  if (driver_ || !carried_.empty()) {
    throw Error("carry_along: it comes once, before the nodes meet: call it before the first step");
  }
  carried_ = values;
  if (!values.empty()) {
    options_.job.emplace_back("carried-values", fmt::to_string(values.size()));
  }
}

Status Optimizer::take_from_node_0(std::span<float> values) {
  if (Status status = connect(); !status.ok() || options_.nodes == 1) {
    return status;
  }
  const auto given = consensus_->meetings().broadcast(fmt::format("given/{}/values", gifts_++),
                                                      std::as_bytes(values));
  if (!given.ok()) {
    return ended_by(given.status());
  }
  ByteReader in(*given);
  if (given->size() != values.size_bytes() || !in.read_into(values)) {
    return ended_by(named({Fault::malformed, "node 0 gives another number of values"}));
  }
  return {};
}

Result<double> Optimizer::mean_model(std::span<float> mean) {
  require_whole_step();
  if (mean.empty()) {
    refuse("mean", "0 elements", fmt::format("the parameters have {}", parameters_.size()));
  }
  require_length_of_mean(mean);
  if (Status status = connect(); !status.ok()) {
    return status;
  }
  auto distance = meet_for_mean(mean);
  if (distance.ok() && watch_ && !begun_) {
    watch_->clock.leave();  // what this took is nobody's gradient
  }
  return distance;
}

Result<double> Optimizer::meet_for_mean(std::span<float> mean) {
  Status status = ended_by(consensus_->whereabouts().come(internal::MeetingPlace::mean, round_));
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
  if (!carried_.empty()) {
    std::vector<float> whole(mine.begin(), mine.end());
    whole.insert(whole.end(), carried_.begin(), carried_.end());
    room = std::move(whole);
    mine = room;
  }
  if (Status fault = accelerator_status(); !fault.ok()) {
    return ended_by(named(fault));
  }
  Meetings& meetings = consensus_->meetings();
  meetings.measure_first(parameters_.size());
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
  if (in.remaining() != mine.size_bytes() || (!mean.empty() && !in.read_into(mean))) {
    return ended_by(named({Fault::malformed, "the mean model has another number of parameters"}));
  }
  consensus_->whereabouts().leave();
  return mean_->consensus_distance;
}

void Optimizer::forget_mean() {
  if (options_.rank == 0 && mean_) {
    (void)session_->remove(mean_key(means_ - 1));
  }
}

Status Optimizer::outlast_data() {
  using Next = internal::UnevenData::Next;
  Vector zeros;
  for (;;) {
    const auto next = consensus_->next_without_data(round_);
    if (!next.ok()) {
      return ended_by(next.status());
    }
    Status status;
    if (*next == Next::nothing) {
      return {};
    }
    if (*next == Next::mean) {
      status = meet_for_mean({}).status();
    } else {
      if (zeros.empty()) {
        const internal::InTurn turn(options_.accelerator.get());
        zeros = Vector(parameters_.size(), ops());
      }
      status = step(zeros);
    }
    if (!status.ok() && status.fault() != Fault::ended) {
      return status;
    }
  }
}

Status Optimizer::finish() { return finish_with_mean({}).status(); }

Result<double> Optimizer::finish_with_mean(std::span<float> mean) {
  require_whole_step();
  require_length_of_mean(mean);
  Status status = status_;
  if (status.ok() && !finished_ && options_.nodes > 1 &&
      (options_.join != Join::none || !mean.empty())) {
    status = connect();
  }
  if (status.ok() && !finished_ && options_.join != Join::none && options_.nodes > 1) {
    status = outlast_data();
  }
  if (status.ok()) {
    status = drain();
  }
  double distance = 0;
  if (status.ok() && !mean.empty()) {
    auto met = meet_for_mean(mean);
    status = met.status();
    distance = met.ok() ? *met : 0;
  }
  if (status.ok()) {
    status = end_together();
  }
  return status.ok() ? Result<double>(distance) : status;
}

Status Optimizer::end_together() {
  if (entered_) {
    if (Status status = consensus_->whereabouts().come(internal::MeetingPlace::finish, round_);
        !status.ok()) {
      return ended_by(status);
    }
  }
  if (watch_ && watch_->reporter) {
    watch_->reporter->leave(standing(), options_.timeout);
  }
  if (Status status = consensus_->meetings().barrier("end"); !status.ok()) {
    return ended_by(status);
  }
  forget_mean();
  finished_ = true;
  refused_ = Status();
  end_report();
  return {};
}

}  // namespace sotto
