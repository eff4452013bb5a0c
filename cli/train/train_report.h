// How a training run is shown while it runs and in the end. One thread at a time.
#pragma once

#include <cstdio>
#include <string>

#include <sotto/console/output.h>
#include <sotto/trainers/observer.h>
#include <sotto/trainers/result.h>

#include "terminal/progress.h"
#include "terminal/progress_line.h"

namespace sotto::cli {

/// An observer that shows rows of the history as they come, a progress bar on standard error, and
/// warnings.
class TrainReport final : public Observer {
 public:
  TrainReport(const console::Output& output, const Progress& progress, Round rounds);

  void round_done(Round done) override;
  void evaluated(const RunEvaluation& evaluation) override;
  void warning(const std::string& text) override;
  void summary(const RunResult& result);

 private:
  const console::Output& output_;
  const Progress progress_;
  Round rounds_;
  ProgressLine bar_;
  bool titled_ = false;
};

/// Whether a run with these losses at its first evaluation and in the end diverged: it got worse,
/// or is no number any more.
bool diverged(double first_loss, double final_loss);

/// Says in the result why the final models are not where they were to be; absent where they are.
inline constexpr const char* kDumpFault = "dump_parameters_fault";

/// The result as JSON.
Json train_json(const RunResult& result, const Json& config);

}  // namespace sotto::cli
