// The default number of nodes of a run or a graph. Pure functions.
#pragma once

#include <string_view>

namespace sotto::study {

/// The default number of nodes.
inline constexpr int kDefaultNodes = 8;

/// Whether the specification of a topology says by itself how many nodes it has; make_topology then
/// takes 0.
inline bool names_its_size(std::string_view topology) {
  return topology.starts_with("file:") || topology.starts_with("torus:") ||
         topology.starts_with("grid:") || topology.starts_with("edges:");
}

}  // namespace sotto::study
