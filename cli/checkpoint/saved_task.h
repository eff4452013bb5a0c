// The task of a run that saved checkpoints, made again from what the run agreed on.
#pragma once

#include <memory>
#include <string>

#include <sotto/base/parameter_layout.h>
#include <sotto/trainers/files/saved_model.h>
#include <sotto/trainers/tasks/task_registry.h>

namespace sotto::cli {

/// Where the run's data and its scaling are now; empty: the data where the run had them, and no
/// scaling.
struct TaskPlaces {
  std::string task;
  std::string scaling;
};

/// The run's task, as far as it can be made here.
struct RunTask {
  std::shared_ptr<const TaskData> data;
  ParameterLayout layout;
  std::string model;  ///< its specification, with all sizes
};

/// Throws Error where the data or the scaling cannot be read, or are not those of the run.
RunTask task_of(const TaskPlaces& places, const SavedModel& saved);

}  // namespace sotto::cli
