// Checks of a simulation's options before it begins. Pure functions.
#pragma once

#include <cstddef>

#include <sotto/sim/simulator_options.h>

namespace sotto {

/// Throws Error, naming the option, where options of a simulation of `nodes` nodes on `hosts` hosts
/// are out of range. Sampling is checked by SampledClients.
void validate(const SimulatorOptions& options, std::size_t nodes, std::size_t hosts);

}  // namespace sotto
