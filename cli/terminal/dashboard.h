// A training run on a wide terminal: progress, curves, nodes and links, redrawn in place on
// standard error, by an observer.
//
// The terminal's modes stay as they are, and between two redraws the cursor stands at the beginning
// of the line below: however the process ends, there is nothing to restore.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include <sotto/trainers/observer.h>

#include "dashboard_frame.h"

namespace sotto::cli {

class Dashboard final : public Observer {
 public:
  /// A terminal that is narrower gets no dashboard.
  static constexpr int kLeastColumns = 100;
  static constexpr int kLeastRows = 12;

  explicit Dashboard(std::string title);

  bool wants_health() const override { return true; }
  void began(const RunStart& start) override;
  void round_done(Round done) override;
  void evaluated(const RunEvaluation& evaluation) override;
  void warning(const std::string& text) override;

 private:
  using Clock = std::chrono::steady_clock;

  void draw();

  DashboardState state_;
  Clock::time_point began_;
  Clock::time_point drawn_;
  std::size_t height_ = 0;  ///< lines that stand above the cursor
  bool stopping_ = false;   ///< the notice of a signal stands below them
};

}  // namespace sotto::cli
