// What the drawings of a graph have in common. Pure functions; thread-safe.
#pragma once

#include <string>
#include <string_view>

#include <sotto/base/ids.h>

#include "layout.h"

namespace sotto::internal {

/// A curve from a to the rim of the node at b, bent to the right a little, so that it keeps apart
/// from the one that comes the other way.
struct Bend {
  Point from;
  Point control;
  Point to;
};
Bend bend(const Layout& layout, Point from, Point to);

/// Whether an edge of a grid goes out at one border and comes back at the opposite one.
bool wraps_round(const Layout& layout, Rank from, Rank to);
/// The end of the stub of such an edge that starts at `from`.
Point stub_end(const Layout& layout, Rank from, Rank to, Point at);

/// Attributes of a node's circle and of its label.
struct NodeLook {
  std::string_view circle;
  std::string_view label;
};

/// A node as a group with a tooltip, `shift` away from where the layout has it; it is labelled with
/// its rank where there is room.
std::string draw_node(const Layout& layout, Point shift, Rank node, std::string_view tooltip,
                      const NodeLook& look);

}  // namespace sotto::internal
