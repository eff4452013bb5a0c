#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include <fmt/format.h>
#include <sotto/base/error.h>
#include <sotto/base/text.h>
#include <sotto/topology/load_drawing.h>

#include "internal/drawing_parts.h"

namespace sotto {
namespace {

using internal::Layout;
using internal::Point;

constexpr double kMargin = 8;
/// Most edges with arrows: beyond, heads would hide what they point at.
constexpr std::size_t kMostArrows = 400;

struct Colour {
  double red;
  double green;
  double blue;
};
/// Colours from idle to saturated; told apart by lightness too.
constexpr std::array<Colour, 3> kScale = {{{126, 170, 214}, {240, 160, 30}, {190, 20, 45}}};

void require_drawable(const Topology& topology, std::size_t edges) {
  if (topology.nodes() > kMostDrawnNodes || edges > kMostDrawnEdges) {
    refuse("drawing", topology.name(),
           fmt::format("{} nodes and {} edges would be a blot; up to {} nodes and {} edges can be "
                       "drawn with their load",
                       topology.nodes(), edges, kMostDrawnNodes, kMostDrawnEdges));
  }
}

class LoadDrawing {
 public:
  LoadDrawing(const Topology& topology, std::span<const EdgeLoad> edges,
              std::span<const NodeLoad> nodes)
      : layout_(internal::lay_out(topology)), edges_(edges.begin(), edges.end()), nodes_(nodes) {
    // The busiest last, on top.
    std::stable_sort(edges_.begin(), edges_.end(),
                     [](const EdgeLoad& a, const EdgeLoad& b) { return a.load < b.load; });
    fineness_ = std::clamp(std::sqrt(60.0 / static_cast<double>(edges_.size() + 1)), 0.25, 1.0);
  }

  std::string draw() const {
    std::string svg = fmt::format(
        "<svg class='load' viewBox='0 0 {:.0f} {:.0f}' role='img' aria-label='graph with load'>\n",
        layout_.width + 2 * kMargin, layout_.height + 2 * kMargin);
    for (const EdgeLoad& edge : edges_) {
      svg += fmt::format(
          "<g><title>{}</title>{}</g>\n", markup_text(edge.tooltip),
          internal::wraps_round(layout_, edge.from, edge.to) ? draw_stub(edge) : draw_arrow(edge));
    }
    for (Rank node = 0; node < static_cast<Rank>(layout_.nodes.size()); ++node) {
      svg += draw_one_node(node);
    }
    return svg + "</svg>\n";
  }

 private:
  std::string draw_one_node(Rank node) const {
    if (nodes_.empty()) {
      return draw_node(layout_, {kMargin, kMargin}, node, fmt::format("node {}", node),
                       {"class='node'", "class='rank'"});
    }
    const NodeLoad& load = nodes_[static_cast<std::size_t>(node)];
    const std::string look = fmt::format("class='node' style='fill:{}'", load_colour(load.load));
    return draw_node(layout_, {kMargin, kMargin}, node,
                     fmt::format("node {}: {}", node, load.tooltip),
                     {look, "class='rank' style='fill:#fff'"});
  }

  Point node_at(Rank node) const {
    const Point at = layout_.nodes[static_cast<std::size_t>(node)];
    return {kMargin + at.x, kMargin + at.y};
  }

  double width(const EdgeLoad& edge) const {
    return (0.8 + 4.2 * std::clamp(edge.volume, 0.0, 1.0)) * fineness_;
  }

  std::string pen(const EdgeLoad& edge) const {
    return fmt::format("stroke='{}' stroke-width='{:.2f}' fill='none'", load_colour(edge.load),
                       width(edge));
  }

  /// The half that leaves its sender.
  std::string draw_stub(const EdgeLoad& edge) const {
    const Point at = node_at(edge.from);
    const Point end = stub_end(layout_, edge.from, edge.to, at);
    return fmt::format("<path d='M{:.1f} {:.1f} {:.1f} {:.1f}' stroke-dasharray='4 3' {}/>", at.x,
                       at.y, end.x, end.y, pen(edge));
  }

  std::string draw_arrow(const EdgeLoad& edge) const {
    const internal::Bend b = bend(layout_, node_at(edge.from), node_at(edge.to));
    std::string svg =
        fmt::format("<path d='M{:.1f} {:.1f}Q{:.1f} {:.1f} {:.1f} {:.1f}' {}/>", b.from.x, b.from.y,
                    b.control.x, b.control.y, b.to.x, b.to.y, pen(edge));
    if (edges_.size() > kMostArrows) {
      return svg;
    }
    const double length = std::hypot(b.to.x - b.control.x, b.to.y - b.control.y);
    const double size = 5 * fineness_ + 1.1 * width(edge);
    const Point along = {size * (b.to.x - b.control.x) / length,
                         size * (b.to.y - b.control.y) / length};
    return svg + fmt::format("<path d='M{:.1f} {:.1f}L{:.1f} {:.1f} {:.1f} {:.1f}z' fill='{}'/>",
                             b.to.x, b.to.y, b.to.x - along.x - along.y / 2,
                             b.to.y - along.y + along.x / 2, b.to.x - along.x + along.y / 2,
                             b.to.y - along.y - along.x / 2, load_colour(edge.load));
  }

  Layout layout_;
  std::vector<EdgeLoad> edges_;
  std::span<const NodeLoad> nodes_;
  double fineness_ = 1;
};

}  // namespace

std::string load_colour(double load) {
  const double at = std::clamp(load, 0.0, 1.0) * (kScale.size() - 1);
  const auto below = std::min(static_cast<std::size_t>(at), kScale.size() - 2);
  const double share = at - static_cast<double>(below);
  const auto mix = [&](double Colour::*part) {
    return static_cast<int>(
        std::lround((1 - share) * kScale[below].*part + share * kScale[below + 1].*part));
  };
  return fmt::format("#{:02x}{:02x}{:02x}", mix(&Colour::red), mix(&Colour::green),
                     mix(&Colour::blue));
}

std::string draw_load_svg(const Topology& topology, std::span<const EdgeLoad> edges,
                          std::span<const NodeLoad> nodes) {
  require_drawable(topology, edges.size());
  return LoadDrawing(topology, edges, nodes).draw();
}

}  // namespace sotto
