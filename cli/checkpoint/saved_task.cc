#include "saved_task.h"

#include <optional>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/study/train/scaling_file.h>

namespace sotto::cli {

RunTask task_of(const TaskPlaces& places, const SavedModel& saved) {
  const std::string digest = setting_in(saved.agreement, "scaling").value_or("");
  std::optional<SharedScaling> scaling;
  if (!places.scaling.empty()) {
    scaling = study::read_scaling("scaling", places.scaling);
  }
  if ((scaling ? scaling_digest(*scaling).substr(0, kDigestShown) : "") != digest) {
    throw Error("scaling", digest.empty()
                               ? "the run scaled columns by its own rows, and by no such file"
                               : fmt::format("name the file that the run was given with "
                                             "--scaling, of the digest {}",
                                             digest));
  }
  TaskOptions options;
  options.model = setting_in(saved.agreement, "model").value_or("");
  options.nodes = saved.nodes;
  options.deal = false;
  const std::string task =
      places.task.empty() ? setting_in(saved.agreement, "task").value_or("") : places.task;
  RunTask made{.data = load_task(task, scaling ? &*scaling : nullptr), .layout = {}, .model = {}};
  const TaskFactory factory(made.data, options);
  made.layout = factory.make(0)->layout();
  made.model = factory.options().model;
  if (layout_digest(made.layout) != setting_in(saved.agreement, "layout")) {
    throw Error("task", fmt::format("{} has other columns or classes than the run's data", task));
  }
  return made;
}

}  // namespace sotto::cli
