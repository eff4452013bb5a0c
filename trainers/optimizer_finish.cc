// How the optimizer ends: the mean of all models, and the wait for nodes that still have data.
#include <sotto/trainers/optimizer.h>

#include <algorithm>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/kernels/vector.h>
#include <sotto/trainers/meeting.h>

#include "internal/consensus/consensus.h"
#include "internal/reporting/run_reporter.h"

namespace sotto {

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
  return ended_by(consensus_->take_from_node_0(values));
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
  if (distance.ok() && !begun_) {
    reporter_->clock().leave();  // what this took is nobody's gradient
  }
  return distance;
}

Result<double> Optimizer::meet_for_mean(std::span<float> mean) {
  Status status = ended_by(consensus_->come_to_mean(round_));
  if (status.ok()) {
    status = drain();
  }
  if (!status.ok()) {
    return status;
  }
  std::vector<float> room;
  const auto parameters = on_host(room);
  if (!parameters.ok()) {
    return ended_by(named(parameters.status()));
  }
  std::span<const float> values = *parameters;
  std::vector<float> whole;
  if (!carried_.empty()) {
    whole.assign(values.begin(), values.end());
    whole.insert(whole.end(), carried_.begin(), carried_.end());
    values = whole;
  }
  auto distance = consensus_->mean(round_, values, parameters_.size(), mean);
  return distance.ok() ? distance : Result<double>(ended_by(distance.status()));
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
        const AcceleratorScope scope(options_.accelerator.get());
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
  if (consensus_->entered()) {
    if (Status status = consensus_->whereabouts().come(internal::MeetingPlace::finish, round_);
        !status.ok()) {
      return ended_by(status);
    }
  }
  reporter_->leave(standing(), options_.timeout);
  if (Status status = consensus_->end(); !status.ok()) {
    return ended_by(status);
  }
  finished_ = true;
  refused_ = Status();
  end_report();
  return {};
}

Status Optimizer::drain() {
  if (!driver_ || !status_.ok()) {
    return status_;
  }
  Status status = driver_->drain();
  note_warnings();
  if (status.ok() && ledger_) {
    status = named(ledger_->settle(private_->steps()));
  }
  return ended_by(status);
}

}  // namespace sotto
