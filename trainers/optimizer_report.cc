// What the optimizer tells of a run: reports, evaluations, times, traffic and compression.
#include <sotto/trainers/optimizer.h>

#include <algorithm>

#include "internal/agreement/run_agreement.h"
#include "internal/optimizer/compression_watch.h"
#include "internal/optimizer/work_before.h"
#include "internal/reporting/run_reporter.h"

namespace sotto {
namespace {

std::optional<PrivacyReport> report_of(const std::optional<PrivacySpent>& spent) {
  return spent
             ? std::optional(PrivacyReport{spent->steps, spent->epsilon, spent->delta, spent->left})
             : std::nullopt;
}

}  // namespace

Status Optimizer::begin_report() {
  if (!reporter_->to_begin()) {
    return {};
  }
  compression_->measure_before(reporter_->next(round_));
  Status status = reporter_->begin(
      {.nodes = options_.nodes, .done = round_, .dimension = parameters_.size()}, warnings_);
  return ended_by(named(status));
}

Status Optimizer::report(internal::Findings found) {
  if (Status status = drain(); !status.ok()) {
    return status;
  }
  found.consensus_distance = agreement_->distance(round_).value_or(found.consensus_distance);
  reporter_->report(standing(), found);
  compression_->measure_before(reporter_->next(round_));
  return {};
}

void Optimizer::end_report() {
  if (status_.ok()) {
    reporter_->finish(standing());
  } else {
    reporter_->set_fault(status_);
  }
}

Status Optimizer::evaluated(double loss, double accuracy) {
  require_whole_step();
  if (!reporter_->takes_evaluations()) {
    return status_;
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
  standing.compression = compression_->last();
  standing.privacy = report_of(privacy());
  standing.wall_s = reporter_->wall_s();
  standing.compute_s = reporter_->clock().gradient_s();
  return standing;
}

}  // namespace sotto
