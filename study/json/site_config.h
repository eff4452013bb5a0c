// The settings of a site as JSON. Pure functions; thread-safe.
#pragma once

#include <string_view>

#include <sotto/base/json.h>
#include <sotto/sites/process/site_options.h>
#include <sotto/trainers/tasks/task_registry.h>

namespace sotto::study {

/// All settings as used, as results have them under "config". `part` says which of how many parts
/// of the data the site has, "1/4"; `algorithm` is as given; `eval_every` counts rounds.
Json site_config_json(const SiteOptions& run, const TaskFactory& tasks, std::string_view part,
                      std::string_view algorithm, Round eval_every);

}  // namespace sotto::study
