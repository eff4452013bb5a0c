// Reads the settings that hold for all runs of a scenario. Throws Error naming line and key of what
// is wrong. One thread at a time.
#pragma once

#include <string>

#include <sotto/study/scenario/scenario.h>
#include <sotto/study/toml/reader.h>

namespace sotto::study {

/// [task]: settings of `sotto train` that hold for all runs.
void read_task(const toml::table& file, const std::string& path, Scenario& scenario);

}  // namespace sotto::study
