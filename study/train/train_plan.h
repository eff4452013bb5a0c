// From the settings of `sotto train` to what is to be run: defaults filled in, everything that can
// be refused has been. Plain values.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <sotto/base/setting_text.h>
#include <sotto/sim/compute_time.h>
#include <sotto/study/train/train_options.h>
#include <sotto/trainers/launch/launcher.h>
#include <sotto/trainers/run.h>
#include <sotto/trainers/tasks/task_registry.h>

namespace sotto::study {

struct TrainPlan {
  RunOptions run;
  std::shared_ptr<const TaskFactory> tasks;
  std::vector<Round> own_rounds;  ///< rounds for which each node has data, by rank; empty: for all
  std::optional<ComputeTime> pace;       ///< time of gradients, if they are to be slowed down
  std::optional<LaunchedNode> launched;  ///< this process is one node of a launched job
  std::string peers;     ///< file of the list of peers, which may change during the run
  TrainOptions options;  ///< the settings as given
  std::vector<SettingText> warnings;
  std::vector<SettingText> notices;  ///< decisions made for the user, though nothing is amiss

  /// The task of a node that this process runs.
  std::unique_ptr<Task> task_of(Rank rank) const;
  /// The task of a node at its own speed.
  std::unique_ptr<Task> unpaced_task_of(Rank rank) const;
  /// This process's node prints and writes the results.
  bool reports() const { return !launched || launched->rank == 0; }
};

/// The settings of a run as used, without the data that a TrainPlan's tasks hold.
struct RunSettings {
  TrainOptions options;  ///< the settings as given
  RunOptions run;
  TaskOptions task;
  std::string task_spec;  ///< the task's specification, from which the data were loaded
};

/// Copies the settings out of a plan; its tasks are then not needed for them.
RunSettings settings_of(const TrainPlan& plan);

/// Loads the data, or takes those that were loaded for these options. Throws Error.
TrainPlan make_train_plan(const TrainOptions& options,
                          std::shared_ptr<const TaskData> data = nullptr);

}  // namespace sotto::study
