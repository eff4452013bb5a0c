// What the optimizer tells of a run: reports, evaluations, times, traffic and compression.
#include <sotto/trainers/optimizer.h>

#include <algorithm>

#include <sotto/trainers/privacy_ledger.h>
#include <sotto/trainers/result.h>

#include "internal/consensus/consensus.h"
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
  found.consensus_distance = consensus_->distance(round_).value_or(found.consensus_distance);
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
  std::vector<LinkTraffic> total = traffic_before_;
  if (total.empty()) {
    for (const Rank peer : peers_.to) {
      total.push_back({options_.rank, peer, 0, 0});
    }
  }
  const auto now = driver_ ? driver_->traffic() : std::vector<LinkTraffic>();
  for (std::size_t i = 0; i < now.size(); ++i) {
    total[i].bytes += now[i].bytes;
    total[i].frames += now[i].frames;
  }
  return total;
}

DriverTimes Optimizer::times() const {
  const DriverTimes now = driver_ ? driver_->times() : DriverTimes();
  return {times_before_.algorithm_s + now.algorithm_s, times_before_.wait_s + now.wait_s};
}

AlgorithmCounters Optimizer::counters() const {
  return driver_ ? driver_->counters() : algorithm_->counters();
}

void Optimizer::measure_compression(Round first) {
  if (meter_) {
    meter_->measure_from(first / options_.communication_interval);  // an exchange's own number
  }
}

void Optimizer::measure_compression_before(Round done) {
  const Round first = done - std::min(done, options_.communication_interval);
  if (!measured_ || first >= *measured_ + kMeasureEvery) {
    measured_ = first;
    measure_compression(first);
  }
}

std::optional<CompressionSample> Optimizer::compression() const {
  return meter_ ? meter_->last() : std::nullopt;
}

}  // namespace sotto
