// What a scenario's file says of the runs. Throws Error naming line and
// key of what is wrong. One thread at a time.
#pragma once

#include <string>

#include <sotto/study/scenario/scenario.h>
#include <sotto/study/toml/reader.h>
#include <sotto/study/toml/text.h>

namespace sotto::study {

/// `run`: each run's words, or a table with these and a label. `file` is that of the reader.
void read_runs(TomlReader& in, const toml::table& file, const std::string& path,
               Scenario& scenario);

}  // namespace sotto::study
