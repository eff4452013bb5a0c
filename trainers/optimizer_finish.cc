// How the optimizer ends: the mean of all models, and the wait for nodes that still have data.
#include <sotto/trainers/optimizer.h>

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/kernels/vector.h>
#include <sotto/trainers/meetings/model_average.h>
#include <sotto/trainers/meetings/store_collectives.h>
#include <sotto/trainers/privacy_budget.h>

#include "internal/agreement/run_agreement.h"
#include "internal/optimizer/whole_model.h"
#include "internal/reporting/run_reporter.h"

namespace sotto {

void Optimizer::carry_along(std::span<const float> values) {
  if (driver_ || model_->carried() > 0) {
    throw Error("carry_along",
                "it comes once, before the nodes meet: call it before the first step");
  }
  model_->carry(values);
  if (!values.empty()) {
    options_.job.emplace_back("carried-values", fmt::to_string(values.size()));
  }
}

Status Optimizer::take_from_node_0(std::span<float> values) {
  if (Status status = connect(); !status.ok() || options_.nodes == 1) {
    return status;
  }
  return ended_by(agreement_->take_from_node_0(values));
}

Result<double> Optimizer::mean_model(std::span<float> mean) {
  require_whole_step();
  if (mean.empty()) {
    refuse("mean", "0 elements", fmt::format("the parameters have {}", parameters_.size()));
  }
  model_->require_length(mean);
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
  Status status = ended_by(agreement_->come_to_mean(round_));
  if (status.ok()) {
    status = drain();
  }
  if (!status.ok()) {
    return status;
  }
  std::vector<float> room;
  const auto values = model_->on_host(room);
  if (!values.ok()) {
    return ended_by(named(values.status()));
  }
  auto distance = agreement_->mean(round_, *values, parameters_.size(), mean);
  return distance.ok() ? distance : Result<double>(ended_by(distance.status()));
}

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
    if (Status status = agreement_->whereabouts().come(internal::MeetingPlace::finish, round_);
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
