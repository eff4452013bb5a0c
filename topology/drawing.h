// A graph as a drawing. Pure functions; thread-safe.
#pragma once

#include <string>

#include <sotto/topology/topology.h>

namespace sotto {

/// A drawing as a self-contained SVG document: grids and tori as such, stars round their hub, other
/// graphs on a circle; heavier edges are thicker, rounds have colours. Throws Error beyond 2,000
/// nodes or 40,000 edges, where nothing could be seen.
std::string draw_svg(const Topology& topology);

}  // namespace sotto
