// Reads nodes that are clients of traces. Throws Error naming line and key of what is wrong. One
// thread at a time.
#pragma once

#include <cstdint>

#include <sotto/study/scenario/internal/names.h>
#include <sotto/study/scenario/scenario.h>
#include <sotto/study/toml/reader.h>

namespace sotto::study {

/// [nodes] capacity, availability, hours and clock (docs/traces.md), of a scenario that knows how
/// many nodes there are and what their gradients take.
void read_clients(TomlReader& nodes, Scenario& scenario, const Names& names, std::uint64_t seed);

}  // namespace sotto::study
