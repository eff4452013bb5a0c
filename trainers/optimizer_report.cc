// What an optimizer tells whoever watches it.
#include <sotto/trainers/optimizer.h>
#include <sotto/trainers/result.h>

#include "internal/run_watch.h"

namespace sotto {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

HistoryPoint point_at(Round round, double time_s, double loss = kNone, double accuracy = kNone,
                      double consensus = kNone) {
  return {.round = round,
          .time_s = time_s,
          .loss = loss,
          .accuracy = accuracy,
          .consensus_distance = consensus};
}

std::optional<PrivacyReport> report_of(const std::optional<PrivacySpent>& spent) {
  return spent
             ? std::optional(PrivacyReport{spent->steps, spent->epsilon, spent->delta, spent->left})
             : std::nullopt;
}

}  // namespace

NodeStanding Optimizer::standing() const {
  NodeStanding standing;
  standing.node = options_.rank;
  standing.round = round_;
  standing.traffic = traffic();
  standing.times = times();
  standing.counters = counters();
  standing.compression = compression();
  standing.privacy = report_of(privacy());
  if (watch_) {
    standing.wall_s = watch_->wall.seconds();
    standing.compute_s = watch_->clock.gradient_s();
  }
  return standing;
}

Status Optimizer::begin_report() {
  if (!watch_ || !watch_->reporter || watch_->reporter->begun()) {
    return {};
  }
  watch_->wall.go();
  aim_meter();
  Status status = watch_->reporter->begin(
      {.nodes = options_.nodes, .done = round_, .dimension = parameters_.size()}, warnings_);
  return ended_by(named(status));
}

void Optimizer::aim_meter() {
  if (const auto round = watch_->aim(round_, options_.communication_interval)) {
    measure_compression(*round);
  }
}

Status Optimizer::report(bool evaluated, double loss, double accuracy) {
  if (Status status = drain(); !status.ok()) {
    return status;
  }
  const bool known = mean_ && mean_->round == round_;
  watch_->reporter->report(standing(),
                           point_at(round_, watch_->wall.seconds(), loss, accuracy,
                                    known ? mean_->consensus_distance : kNone),
                           evaluated);
  aim_meter();
  return {};
}

void Optimizer::end_report() {
  if (!watch_ || !watch_->reporter) {
    return;
  }
  if (status_.ok()) {
    watch_->reporter->finish(standing(), point_at(round_, watch_->wall.seconds()));
  } else {
    watch_->reporter->set_fault(status_);
  }
}

Status Optimizer::evaluated(double loss, double accuracy) {
  require_whole_step();
  if (!watch_ || !watch_->reporter || options_.rank != 0) {
    return status_;
  }
  Status status = connect();
  if (status.ok()) {
    status = begin_report();
  }
  if (status.ok()) {
    status = report(true, loss, accuracy);
  }
  if (!begun_) {
    watch_->clock.leave();
  }
  return status;
}

Status Optimizer::end_step(const Status& status) {
  if (keep_open(status)) {
    if (watch_) {
      watch_->clock.again();
    }
    return status;
  }
  if (!status.ok()) {
    return ended_by(status);
  }
  refused_ = Status();
  begun_ = false;
  ++round_;
  note_warnings();
  if (!watch_) {
    return {};
  }
  Status reported;
  if (watch_->reporter) {
    watch_->reporter->round_done(round_);
  }
  watch_->clock.done(round_ - 1);
  if (watch_->due(round_)) {
    reported = report(false, kNone, kNone);
  }
  watch_->clock.leave();
  return reported;
}

}  // namespace sotto
