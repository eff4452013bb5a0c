// What a scenario's file says of the network, apart from trunks and what happens to it. Throws
// Error naming line and key of what is wrong. One thread at a time.
#pragma once

#include <sotto/study/scenario/internal/names.h>
#include <sotto/study/scenario/scenario.h>
#include <sotto/study/toml/reader.h>

namespace sotto::study {

/// [network], after [nodes].
void read_network(TomlReader in, Scenario& scenario, const Names& names);

}  // namespace sotto::study
