// Reads lies of nodes. Throws Error naming line and key of what is wrong. One thread at a time.
#pragma once

#include <sotto/study/scenario/internal/names.h>
#include <sotto/study/scenario/scenario.h>
#include <sotto/study/toml/reader.h>

namespace sotto::study {

/// [attack] of a file of which [nodes] and [task] are read.
void read_attack(TomlReader& file, Scenario& scenario, const Names& names);
/// Refuses lies, of [attack] and others, where there are none to tell. The last to read.
void check_attack(const TomlReader& file, const Scenario& scenario);

}  // namespace sotto::study
