// What the nodes share of their models outside the rounds: the mean, and values that go along.
#include <sotto/trainers/optimizer.h>

#include <vector>

#include <fmt/format.h>

#include <sotto/base/error.h>

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

}  // namespace sotto
