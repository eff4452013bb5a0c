// The observers that watch a run of `sotto train`, as its options say. One thread at a time.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <CLI/App.hpp>

#include <sotto/observe/telemetry.h>
#include <sotto/study/train/train_plan.h>
#include <sotto/trainers/observer.h>

#include "terminal/dashboard.h"
#include "terminal/progress.h"

namespace sotto::cli {

struct ObserveOptions {
  std::string progress = "auto";
  TelemetryOptions telemetry;
};

/// `options` must live as long as the command.
void add_observe_options(CLI::App& command, ObserveOptions& options);

class TrainObservers {
 public:
  /// Makes the files. `flags` is how warnings spell settings, and `report` the first observer; both
  /// must outlive this object. Throws Error for what cannot be made.
  TrainObservers(const ObserveOptions& options, const Spelling& flags, const Progress& progress,
                 const study::TrainPlan& plan, Observer& report);

  /// All of them.
  Observer& all() { return all_; }
  /// Telemetry::outputs
  std::vector<std::string> outputs() const { return telemetry_.outputs(); }

 private:
  std::unique_ptr<Dashboard> dashboard_;
  Telemetry telemetry_;
  Observers all_;
};

}  // namespace sotto::cli
