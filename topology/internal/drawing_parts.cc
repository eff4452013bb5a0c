#include "drawing_parts.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <sotto/base/text.h>

namespace sotto::internal {

Bend bend(const Layout& layout, Point from, Point to) {
  const Point control = {(from.x + to.x) / 2 - 0.1 * (to.y - from.y),
                         (from.y + to.y) / 2 + 0.1 * (to.x - from.x)};
  const double length = std::hypot(to.x - control.x, to.y - control.y);
  const double stop = length > 0 ? (layout.node_radius + 1.5) / length : 0;
  return {from, control, {to.x + stop * (control.x - to.x), to.y + stop * (control.y - to.y)}};
}

bool wraps_round(const Layout& layout, Rank from, Rank to) {
  const int columns = layout.columns;
  return columns > 0 && (std::abs(from / columns - to / columns) > 1 ||
                         std::abs(from % columns - to % columns) > 1);
}

Point stub_end(const Layout& layout, Rank from, Rank to, Point at) {
  const bool vertical = from % layout.columns == to % layout.columns;
  const double reach = (from < to ? -0.5 : 0.5) * layout.cell;
  return {at.x + (vertical ? 0 : reach), at.y + (vertical ? reach : 0)};
}

std::string draw_node(const Layout& layout, Point shift, Rank node, std::string_view tooltip,
                      const NodeLook& look) {
  const Point at = layout.nodes[static_cast<std::size_t>(node)];
  std::string svg = fmt::format(
      "<g><title>{}</title><circle cx='{:.1f}' cy='{:.1f}' r='{:.1f}' {} stroke-width='{:.1f}'/>",
      markup_text(tooltip), shift.x + at.x, shift.y + at.y, layout.node_radius, look.circle,
      std::min(1.6, layout.node_radius / 4));
  if (layout.label_every > 0 && node % layout.label_every == 0) {
    const Point label = layout.labels[static_cast<std::size_t>(node)];
    svg += fmt::format(
        "<text x='{:.1f}' y='{:.1f}' font-size='{:.1f}' text-anchor='middle' {}>{}</text>",
        shift.x + label.x, shift.y + label.y + 0.36 * layout.label_size, layout.label_size,
        look.label, node);
  }
  return svg + "</g>\n";
}

}  // namespace sotto::internal
