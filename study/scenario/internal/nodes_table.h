// What a scenario's file says of nodes: their number, groups and times. Throws Error naming line
// and key of what is wrong. One thread at a time.
#pragma once

#include <sotto/study/scenario/internal/names.h>
#include <sotto/study/scenario/scenario.h>
#include <sotto/study/toml/reader.h>

namespace sotto::study {

/// [nodes]. Adds their groups to `names`; the seed is read already.
void read_nodes(TomlReader in, Scenario& scenario, Names& names);

}  // namespace sotto::study
