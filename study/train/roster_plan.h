// From the settings of `sotto train` to one node of a run whose nodes come and go: defaults filled
// in, everything that can be refused has been. Plain values.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <sotto/sites/elastic/elastic_options.h>
#include <sotto/sites/elastic/elastic_settings.h>
#include <sotto/sites/nodes/roster_settings.h>
#include <sotto/sites/process/site_options.h>
#include <sotto/study/train/train_options.h>
#include <sotto/trainers/tasks/task_registry.h>

namespace sotto::study {

/// What one node of such a run does.
struct RosterPlan {
  SiteOptions run;
  /// The run in epochs, where all nodes have one model; `run` is not used then.
  std::optional<ElasticOptions> epochs{};
  std::unique_ptr<Task> task;     ///< task on all data, in an order that follows from seed and name
  std::vector<float> parameters;  ///< the initial model
  Round eval_every = 0;           ///< rounds of the site between evaluations; 0: only at the end
  std::vector<std::string> warnings;

  // The settings from which the above was made, with defaults filled in.
  TrainOptions options;
  RosterSettings roster;
  TaskOptions task_options;
  std::string task_spec;  ///< the task's specification, from which the data were loaded
};

/// Loads the data. `given` names the settings that were asked for: one that such a run does not
/// have is refused rather than ignored, and without "algorithm" among them the algorithm is
/// pushsum. Key, `insecure` and what is computed are those of `options`. Throws Error for a setting
/// that is refused.
RosterPlan make_roster_plan(const TrainOptions& options, const std::vector<std::string>& given,
                            ElasticSettings settings);

}  // namespace sotto::study
