// A graph drawn with what its edges carry. Pure functions; thread-safe.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include <sotto/topology/topology.h>

namespace sotto {

inline constexpr int kMostDrawnNodes = 400;           ///< most nodes of a drawing
inline constexpr std::size_t kMostDrawnEdges = 6000;  ///< most edges of a drawing

/// The load of one direction between two nodes.
struct EdgeLoad {
  Rank from = 0;
  Rank to = 0;
  double load = 0;    ///< 0 idle … 1 saturated: the colour
  double volume = 0;  ///< share of the most that an edge carries, 0 … 1: the width
  std::string tooltip;
};

/// How busy a node's own connection is, 0 … 1.
struct NodeLoad {
  double load = 0;
  std::string tooltip;  ///< text behind "node 3: "
};

/// The nodes where draw_svg (drawing.h) has them, in the colours of `nodes` unless that is empty,
/// and an arrow for each of `edges`, which need not be the graph's own. An `<svg>` element for a
/// page that styles the classes `node` (circles) and `rank` (their labels). Throws Error beyond
/// kMostDrawnNodes or kMostDrawnEdges.
std::string draw_load_svg(const Topology& topology, std::span<const EdgeLoad> edges,
                          std::span<const NodeLoad> nodes = {});

/// "#rrggbb"
std::string load_colour(double load);

}  // namespace sotto
