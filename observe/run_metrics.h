// A training run for Prometheus: all figures as of the last evaluation, and the round, which is
// that of now. As an observer; in the process of node 0 it listens from when the run begins.
#pragma once

#include <atomic>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include <sotto/observe/monitor.h>
#include <sotto/trainers/observer.h>
#include <sotto/trainers/result.h>

namespace sotto {

/// The page /metrics of a run.
std::string run_metrics_text(const RunStart& start, Round done,
                             const std::optional<RunEvaluation>& last);

class RunMetrics final : public Observer {
 public:
  /// Does not listen yet.
  explicit RunMetrics(MonitorAddress address) : address_(std::move(address)) {}

  bool wants_health() const override { return true; }
  /// Throws std::runtime_error when the address cannot be had.
  void began(const RunStart& start) override;
  void round_done(Round done) override { done_ = done; }
  void evaluated(const RunEvaluation& evaluation) override;

 private:
  const MonitorAddress address_;
  std::atomic<Round> done_{0};
  std::mutex mutex_;  ///< guards what follows
  RunStart start_;
  std::optional<RunEvaluation> last_;
  std::optional<Monitor> monitor_;  ///< the last member: its threads use the others
};

}  // namespace sotto
