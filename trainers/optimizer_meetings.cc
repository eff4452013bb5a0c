// What all nodes do together outside the rounds, and how the optimizer ends.
#include <sotto/trainers/optimizer.h>

#include <utility>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/trainers/privacy_budget.h>

#include "internal/agreement/run_agreement.h"
#include "internal/optimizer/model_meetings.h"
#include "internal/optimizer/run_outcome.h"
#include "internal/optimizer/step_parts.h"
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
  return meetings_->take_from_node_0(values);
}

Result<double> Optimizer::mean_model(std::span<float> mean) {
  parts_->require_none();
  auto distance = meetings_->mean(mean);
  if (distance.ok() && !begun_) {
    reporter_->clock().leave();  // what this took is nobody's gradient
  }
  return distance;
}

Status Optimizer::drain() {
  if (!driver_ || !outcome_->status().ok()) {
    return outcome_->status();
  }
  Status status = driver_->drain();
  note_warnings();
  if (status.ok() && budget_) {
    status = outcome_->named(budget_->settle());
  }
  return outcome_->ended_by(status);
}

Status Optimizer::finish() { return finish_with_mean({}).status(); }

Result<double> Optimizer::finish_with_mean(std::span<float> mean) {
  parts_->require_none();
  auto distance = meetings_->come_to_end(mean);
  if (!distance.ok()) {
    return distance;
  }
  Status status = end_together();
  return status.ok() ? distance : Result<double>(std::move(status));
}

Status Optimizer::end_together() {
  if (agreement_->entered()) {
    if (Status status = agreement_->meetings().come(internal::MeetingPlace::finish, round_);
        !status.ok()) {
      return outcome_->ended_by(status);
    }
  }
  reporter_->leave(standing(), options_.timeout);
  if (Status status = agreement_->end(); !status.ok()) {
    return outcome_->ended_by(status);
  }
  meetings_->clean_up();
  outcome_->finish();
  reporter_->finish(standing());
  return {};
}

}  // namespace sotto
