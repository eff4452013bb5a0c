#include "layout.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <optional>
#include <string_view>

#include "families.h"

namespace sotto::internal {
namespace {

constexpr double kSide = 640;
constexpr double kMargin = 48;
constexpr double kMostRadius = 19;
constexpr double kLeastRadius = 2.5;
/// A node of this radius has room for its label.
constexpr double kRoomyRadius = 11;

std::optional<GridShape> shape_of(const Topology& topology) {
  const std::string_view name = topology.name();
  const std::size_t colon = name.find(':');
  const std::string_view family = name.substr(0, colon);
  if (colon == std::string_view::npos || (family != "grid" && family != "torus")) {
    return std::nullopt;
  }
  const GridShape shape = grid_shape({name, name.substr(colon + 1), topology.nodes(), /*seed=*/0});
  // A single row reads better as a circle.
  return shape.rows > 1 && shape.columns > 1 ? std::optional(shape) : std::nullopt;
}

bool is_star(const Topology& topology) {
  const auto n = static_cast<std::size_t>(topology.nodes());
  return n > 2 && topology.period() == 1 && topology.edge_count(0) == 2 * (n - 1) &&
         topology.out_edges(0, 0).size() == n - 1;
}

Layout on_grid(const GridShape& shape) {
  Layout layout;
  layout.columns = shape.columns;
  layout.cell = std::clamp(kSide / std::max(shape.rows, shape.columns), 14.0, 92.0);
  layout.width = layout.cell * shape.columns;
  layout.height = layout.cell * shape.rows;
  layout.node_radius = std::clamp(0.24 * layout.cell, kLeastRadius, kMostRadius);
  for (int row = 0; row < shape.rows; ++row) {
    for (int column = 0; column < shape.columns; ++column) {
      layout.nodes.push_back({(column + 0.5) * layout.cell, (row + 0.5) * layout.cell});
    }
  }
  layout.labels = layout.nodes;
  layout.label_every = layout.node_radius >= 0.8 * kRoomyRadius ? 1 : 0;
  layout.label_size = 0.72 * layout.node_radius;
  return layout;
}

Layout on_circle(int nodes, bool hub) {
  Layout layout;
  layout.width = kSide;
  layout.height = kSide;
  const int around = std::max(1, hub ? nodes - 1 : nodes);
  const double radius = nodes == 1 ? 0 : kSide / 2 - kMargin;
  const double spacing = 2 * std::numbers::pi * radius / around;
  layout.node_radius =
      nodes == 1 ? kMostRadius : std::clamp(0.3 * spacing, kLeastRadius, kMostRadius);
  const bool outside = layout.node_radius < kRoomyRadius;
  layout.label_size = outside ? 10 : 0.72 * layout.node_radius;
  layout.label_every = 1;
  for (const int every : {2, 5, 10, 20, 50, 100, 200, 500}) {
    if (outside && spacing * layout.label_every < 14) {
      layout.label_every = every;
    }
  }
  const double label_radius = radius + (outside ? layout.node_radius + 14 : 0);
  for (int node = 0; node < nodes; ++node) {
    const bool centre = hub && node == 0;
    const double angle = 2 * std::numbers::pi * (hub ? node - 1 : node) / around;
    const auto at = [&](double r) {
      return Point{kSide / 2 + r * std::sin(angle), kSide / 2 - r * std::cos(angle)};
    };
    layout.nodes.push_back(at(centre ? 0 : radius));
    layout.labels.push_back(at(centre ? 0 : label_radius));
  }
  return layout;
}

}  // namespace

Layout lay_out(const Topology& topology) {
  const auto shape = shape_of(topology);
  return shape ? on_grid(*shape) : on_circle(topology.nodes(), is_star(topology));
}

}  // namespace sotto::internal
