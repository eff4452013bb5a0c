// How a training run is shown while it runs and in the end. One thread at a time.
#pragma once

#include <atomic>
#include <cstdio>

#include <sotto/trainers/result.h>
#include <sotto/trainers/run.h>

#include "output.h"

namespace sotto::cli {

/// Rows of the history as they come, and on a terminal a progress bar on standard error.
class TrainReport {
 public:
  TrainReport(const Output& output, bool quiet, Round rounds);
  ~TrainReport() { clear_bar(); }
  TrainReport(const TrainReport&) = delete;
  TrainReport& operator=(const TrainReport&) = delete;

  /// Hooks that call this object, which must outlive them.
  RunHooks hooks(const std::atomic<bool>& stop);
  void summary(const RunResult& result);

 private:
  void show(const HistoryPoint& point);
  void draw_bar(Round done);
  void clear_bar();

  const Output& output_;
  Round rounds_;
  bool bar_;
  int drawn_ = -1;  ///< per mille shown by the bar, −1 when none stands
  bool titled_ = false;
};

/// Whether a run with these losses at its first evaluation and in the end diverged: it got worse,
/// or is no number any more.
bool diverged(double first_loss, double final_loss);

/// The result as JSON.
Json train_json(const RunResult& result, const Json& config);

}  // namespace sotto::cli
