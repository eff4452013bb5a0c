// Where the nodes of a drawing stand. Pure functions; thread-safe.
#pragma once

#include <vector>

#include <sotto/topology/topology.h>

namespace sotto::internal {

struct Point {
  double x = 0;
  double y = 0;
};

/// Lengths are the drawing's units (pixels at 100 %).
struct Layout {
  double width = 0;
  double height = 0;
  double node_radius = 0;
  std::vector<Point> nodes;
  std::vector<Point> labels;  ///< inside the node, or outside the circle
  int label_every = 1;        ///< only each such node has a label; 0 for none
  double label_size = 12;
  /// Columns of a grid, 0 for other layouts. Edges that wrap round are then drawn as two stubs.
  int columns = 0;
  double cell = 0;
};

/// Rows and columns for grids and tori, a hub in the middle for stars, a circle for all others.
Layout lay_out(const Topology& topology);

}  // namespace sotto::internal
