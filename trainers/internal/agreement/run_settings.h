// What the nodes of a run must agree on, and checkpoints hold, as text. Pure functions;
// thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include <sotto/topology/topology.h>
#include <sotto/trainers/optimizer_options.h>

namespace sotto::internal {

/// The settings by name, one a line, of a job on this graph and of a model of so many parameters in
/// this layout. Each node's own settings are left out.
std::string run_settings_text(const OptimizerOptions& options, const ParameterLayout& layout,
                              const Topology& graph, std::size_t dimension);

/// A number that differs between runs with different settings, of their text; frames carry it.
std::uint64_t run_number(const std::string& settings);

}  // namespace sotto::internal
