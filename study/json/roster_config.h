// The settings of a run whose nodes come and go as JSON. Pure functions; thread-safe.
#pragma once

#include <sotto/base/json.h>
#include <sotto/study/train/roster_plan.h>

namespace sotto::study {

/// All settings of one node as used, as results have them under "config".
Json roster_config_json(const RosterPlan& plan);

}  // namespace sotto::study
