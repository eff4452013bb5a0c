// Reads what nodes and their traffic cost. Throws Error naming line and key of what is wrong. One
// thread at a time.
#pragma once

#include <sotto/study/scenario/internal/names.h>
#include <sotto/study/scenario/scenario.h>
#include <sotto/study/toml/reader.h>

namespace sotto::study {

/// [costs] of a file of which [nodes] is read.
void read_costs(TomlReader& file, Scenario& scenario, const Names& names);

}  // namespace sotto::study
