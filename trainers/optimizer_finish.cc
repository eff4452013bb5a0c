// How the optimizer ends: it waits for nodes that still have data, and until all have come as far.
#include <sotto/trainers/optimizer.h>

#include <utility>

#include <sotto/kernels/vector.h>
#include <sotto/trainers/privacy_budget.h>

#include "internal/agreement/run_agreement.h"
#include "internal/optimizer/whole_model.h"
#include "internal/reporting/run_reporter.h"

namespace sotto {

Status Optimizer::outlast_data() {
  using Next = internal::UnevenData::Next;
  Vector zeros;
  for (;;) {
    const auto next = agreement_->next_without_data(round_);
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
        zeros = Vector(parameters_.size(), model_->ops());
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
  model_->require_length(mean);
  if (!status_.ok()) {
    return status_;
  }
  const bool meets_others = !finished_ && options_.nodes > 1;
  const bool outlasts = meets_others && options_.join != Join::none;
  if (outlasts || (meets_others && !mean.empty())) {
    if (Status status = connect(); !status.ok()) {
      return status;
    }
  }
  if (outlasts) {
    if (Status status = outlast_data(); !status.ok()) {
      return status;
    }
  }
  if (Status status = drain(); !status.ok()) {
    return status;
  }
  Result<double> distance = 0.0;
  if (!mean.empty()) {
    distance = meet_for_mean(mean);
    if (!distance.ok()) {
      return distance;
    }
  }
  Status status = end_together();
  return status.ok() ? distance : Result<double>(std::move(status));
}

Status Optimizer::end_together() {
  if (agreement_->entered()) {
    if (Status status = agreement_->meetings().come(internal::MeetingPlace::finish, round_);
        !status.ok()) {
      return ended_by(status);
    }
  }
  reporter_->leave(standing(), options_.timeout);
  if (Status status = agreement_->end(); !status.ok()) {
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
  if (status.ok() && budget_) {
    status = named(budget_->settle());
  }
  return ended_by(status);
}

}  // namespace sotto
