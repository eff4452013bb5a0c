// The settings of a run whose nodes come and go as JSON. Pure functions; thread-safe.
#pragma once

#include <sotto/base/json.h>
#include <sotto/sites/process/roster_settings.h>
#include <sotto/study/train/roster_plan.h>
#include <sotto/study/train/train_options.h>
#include <sotto/trainers/tasks/task_registry.h>

namespace sotto::study {

/// All settings of one node as used, as results have them under "config". Of the plan all else must
/// be there already.
Json roster_config_json(const TrainOptions& options, const RosterSettings& roster,
                        const TaskFactory& tasks, const RosterPlan& plan);

}  // namespace sotto::study
