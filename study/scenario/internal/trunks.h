// Reads links that groups of nodes share, and what changes them. Throws Error naming line and key
// of what is wrong. One thread at a time.
#pragma once

#include <string>
#include <vector>

#include <sotto/sim/time.h>
#include <sotto/study/scenario/internal/names.h>
#include <sotto/study/scenario/scenario.h>
#include <sotto/study/toml/reader.h>

namespace sotto::study {

/// [[network.trunk]]: links that groups of nodes share.
void read_trunks(TomlReader& network, Scenario& scenario, const Names& names);
/// What an event's `trunk` and `link` change. `places` are where the trunks' changes stand.
void read_trunk_change(TomlReader& event, SimTime at, Scenario& scenario,
                       std::vector<std::string>& places);

}  // namespace sotto::study
