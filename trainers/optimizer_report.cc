// What the optimizer tells of a run: reports, evaluations, times, traffic and compression.
#include <sotto/trainers/optimizer.h>

#include <algorithm>

#include <sotto/trainers/result.h>

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
  measure_compression_before(reporter_->next(round_));
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
  measure_compression_before(reporter_->next(round_));
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
  standing.traffic = traffic();
  standing.times = times();
  standing.counters = counters();
  standing.compression = compression();
  standing.privacy = report_of(privacy());
  standing.wall_s = reporter_->wall_s();
  standing.compute_s = reporter_->clock().gradient_s();
  return standing;
}

std::vector<LinkTraffic> Optimizer::traffic() const {
  return before_->and_since(driver_ ? driver_->traffic() : std::vector<LinkTraffic>());
}

DriverTimes Optimizer::times() const {
  return before_->and_since(driver_ ? driver_->times() : DriverTimes());
}

AlgorithmCounters Optimizer::counters() const {
  return driver_ ? driver_->counters() : algorithm_->counters();
}

void Optimizer::measure_compression(Round first) { compression_->measure(first); }

void Optimizer::measure_compression_before(Round done) { compression_->measure_before(done); }

std::optional<CompressionSample> Optimizer::compression() const { return compression_->last(); }

}  // namespace sotto
