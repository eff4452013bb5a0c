// What the optimizer tells of a run: reports, evaluations, times, traffic and compression.
#include <sotto/trainers/optimizer.h>

#include <algorithm>

#include "internal/optimizer/model_meetings.h"
#include "internal/optimizer/run_outcome.h"
#include "internal/optimizer/step_parts.h"
#include "internal/optimizer/whole_model.h"
#include "internal/optimizer/work_before.h"
#include "internal/reporting/run_reporter.h"

namespace sotto {

Status Optimizer::begin_report() {
  if (!reporter_->to_begin()) {
    return {};
  }
  Status status = reporter_->begin(
      {.nodes = options_.nodes, .done = round_, .dimension = model_->parameters().size()},
      warnings_);
  return outcome_->ended_by(outcome_->named(status));
}

Status Optimizer::report(internal::Findings found) {
  if (Status status = drain(); !status.ok()) {
    return status;
  }
  found.consensus_distance = meetings_->distance(round_).value_or(found.consensus_distance);
  reporter_->report(standing(), found);
  return {};
}

Status Optimizer::evaluated(double loss, double accuracy) {
  parts_->require_none();
  if (!reporter_->takes_evaluations()) {
    return outcome_->status();
  }
  Status status = connect();
  if (status.ok()) {
    status = begin_report();
  }
  if (status.ok()) {
    status = report({.loss = loss, .accuracy = accuracy, .evaluated = true});
  }
  if (!begun_) {
    reporter_->clock().leave();
  }
  return status;
}

NodeStanding Optimizer::standing() const {
  NodeStanding standing;
  standing.node = options_.rank;
  standing.round = round_;
  standing.traffic = before_->and_since(driver_ ? driver_->traffic() : std::vector<LinkTraffic>());
  standing.times = before_->and_since(driver_ ? driver_->times() : DriverTimes());
  standing.counters = driver_ ? driver_->counters() : algorithm_->counters();
  standing.compression = reporter_->compression().last();
  standing.privacy = privacy();
  standing.wall_s = reporter_->wall_s();
  standing.compute_s = reporter_->clock().gradient_s();
  return standing;
}

}  // namespace sotto
