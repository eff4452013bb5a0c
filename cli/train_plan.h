// From the settings of `sotto train` to what is to be run: defaults filled in, everything that can
// be refused has been. Plain values.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <sotto/trainers/launcher.h>
#include <sotto/trainers/run.h>
#include <sotto/trainers/task_registry.h>

#include "output.h"
#include "train_options.h"

namespace sotto::cli {

struct TrainPlan {
  RunOptions run;
  std::shared_ptr<const TaskFactory> tasks;
  std::optional<LaunchedNode> launched;  ///< this process is one node of a launched job
  Json config;                           ///< all settings as used
  std::vector<std::string> warnings;

  /// This process's node prints and writes the results.
  bool reports() const { return !launched || launched->rank == 0; }
};

/// Loads the data. Throws Error.
TrainPlan make_train_plan(const TrainOptions& options);

}  // namespace sotto::cli
