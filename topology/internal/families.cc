#include "families.h"

#include <algorithm>
#include <bit>
#include <limits>

#include <fmt/format.h>
#include <sotto/base/error.h>
#include <sotto/base/number.h>

namespace sotto::internal {
namespace {

/// ⌈log2 n⌉ for n ≥ 1.
int ceil_log2(int n) { return static_cast<int>(std::bit_width(static_cast<unsigned>(n) - 1U)); }

/// Every node tells the one `hop` places on.
void add_shift(int nodes, int hop, std::vector<Arc>& arcs) {
  for (Rank i = 0; i < nodes; ++i) {
    arcs.push_back({i, (i + hop) % nodes});
  }
}

std::vector<Arc> grid_edges(const GridShape& shape, bool wrap) {
  const auto at = [&](int row, int column) { return row * shape.columns + column; };
  std::vector<Arc> edges;
  for (int row = 0; row < shape.rows; ++row) {
    for (int column = 0; column < shape.columns; ++column) {
      if (wrap || row + 1 < shape.rows) {
        edges.push_back({at(row, column), at((row + 1) % shape.rows, column)});
      }
      if (wrap || column + 1 < shape.columns) {
        edges.push_back({at(row, column), at(row, (column + 1) % shape.columns)});
      }
    }
  }
  return both_ways(std::move(edges));
}

/// Reads "RxC"; false when it is anything else.
bool parse_shape(std::string_view text, GridShape& shape) {
  constexpr int kMost = std::numeric_limits<int>::max();
  const std::size_t times = text.find('x');
  if (times == std::string_view::npos) {
    return false;
  }
  const auto rows = parse_number<int>(text.substr(0, times), 1, kMost);
  const auto columns = parse_number<int>(text.substr(times + 1), 1, kMost);
  shape = {rows.value_or(0), columns.value_or(0)};
  return rows && columns;
}

Blueprint lattice(const GraphRequest& request, std::string_view name, bool wrap) {
  const GridShape shape = grid_shape(request);
  return {fmt::format("{}:{}x{}", name, shape.rows, shape.columns),
          shape.rows * shape.columns,
          {grid_edges(shape, wrap)}};
}

}  // namespace

void refuse_graph(const GraphRequest& request, std::string_view reason) {
  refuse("topology", request.spec, reason);
}

void require_nodes(const GraphRequest& request) {
  if (request.nodes < 1 || request.nodes > kMostNodes) {
    refuse_graph(request,
                 fmt::format("{} nodes; any count from 1 to {} does", request.nodes, kMostNodes));
  }
}

void require_arcs(const GraphRequest& request, std::size_t arcs) {
  if (arcs > kMostArcs) {
    refuse_graph(request,
                 fmt::format("{} nodes would make {} directed edges, more than {}; take a sparse "
                             "graph such as exponential or torus",
                             request.nodes, arcs, kMostArcs));
  }
}

std::vector<Arc> both_ways(std::vector<Arc> edges) {
  const std::size_t count = edges.size();
  edges.reserve(2 * count);
  for (std::size_t i = 0; i < count; ++i) {
    edges.push_back({edges[i].to, edges[i].from});
  }
  std::erase_if(edges, [](const Arc& arc) { return arc.from == arc.to; });
  std::sort(edges.begin(), edges.end());
  edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
  return edges;
}

GridShape grid_shape(const GraphRequest& request) {
  GridShape shape;
  if (request.argument.empty()) {
    require_nodes(request);
    shape = {1, request.nodes};
    for (int rows = 2; rows <= request.nodes / rows; ++rows) {
      if (request.nodes % rows == 0) {
        shape = {rows, request.nodes / rows};
      }
    }
    return shape;
  }
  if (!parse_shape(request.argument, shape)) {
    refuse_graph(request, "the shape is ROWSxCOLUMNS, two positive numbers, e.g. 2x4");
  }
  const auto product = std::int64_t{shape.rows} * shape.columns;
  if (product > kMostNodes) {
    refuse_graph(request, fmt::format("{} nodes are more than {}", product, kMostNodes));
  }
  if (request.nodes != 0 && product != request.nodes) {
    refuse_graph(request,
                 fmt::format("{}x{} is {} nodes, not {}; change either, or leave the shape out",
                             shape.rows, shape.columns, product, request.nodes));
  }
  return shape;
}

Blueprint ring(const GraphRequest& request) {
  require_nodes(request);
  std::vector<Arc> edges;
  add_shift(request.nodes, 1, edges);
  return {"ring", request.nodes, {both_ways(std::move(edges))}};
}

Blueprint complete(const GraphRequest& request) {
  require_nodes(request);
  const auto n = static_cast<std::size_t>(request.nodes);
  require_arcs(request, n * (n - 1));
  std::vector<Arc> arcs;
  arcs.reserve(n * (n - 1));
  for (Rank from = 0; from < request.nodes; ++from) {
    for (Rank to = 0; to < request.nodes; ++to) {
      if (from != to) {
        arcs.push_back({from, to});
      }
    }
  }
  return {"complete", request.nodes, {std::move(arcs)}};
}

Blueprint star(const GraphRequest& request) {
  require_nodes(request);
  std::vector<Arc> edges;
  for (Rank leaf = 1; leaf < request.nodes; ++leaf) {
    edges.push_back({0, leaf});
  }
  return {"star", request.nodes, {both_ways(std::move(edges))}};
}

Blueprint line(const GraphRequest& request) {
  require_nodes(request);
  return {"line", request.nodes, {grid_edges({1, request.nodes}, false)}};
}

Blueprint grid(const GraphRequest& request) { return lattice(request, "grid", false); }

Blueprint torus(const GraphRequest& request) { return lattice(request, "torus", true); }

Blueprint hypercube(const GraphRequest& request) {
  require_nodes(request);
  const auto n = static_cast<unsigned>(request.nodes);
  if (!std::has_single_bit(n)) {
    refuse_graph(request, fmt::format("{} nodes are no power of two; {} or {} nodes would do, or "
                                      "torus and exponential for any count",
                                      n, std::bit_floor(n), std::bit_ceil(n)));
  }
  std::vector<Arc> edges;
  for (unsigned i = 0; i < n; ++i) {
    for (unsigned bit = 1; bit < n; bit <<= 1) {
      edges.push_back({static_cast<Rank>(i), static_cast<Rank>(i ^ bit)});
    }
  }
  return {"hypercube", request.nodes, {both_ways(std::move(edges))}};
}

Blueprint exponential(const GraphRequest& request) {
  require_nodes(request);
  std::vector<Arc> arcs;
  for (int k = 0; k < ceil_log2(request.nodes); ++k) {
    add_shift(request.nodes, 1 << k, arcs);
  }
  return {"exponential", request.nodes, {std::move(arcs)}};
}

Blueprint one_peer_exponential(const GraphRequest& request) {
  require_nodes(request);
  // One node alone has a single round without edges.
  std::vector<std::vector<Arc>> rounds(
      static_cast<std::size_t>(std::max(1, ceil_log2(request.nodes))));
  for (int k = 0; k < ceil_log2(request.nodes); ++k) {
    add_shift(request.nodes, 1 << k, rounds[static_cast<std::size_t>(k)]);
  }
  return {"one-peer-exponential", request.nodes, std::move(rounds)};
}

}  // namespace sotto::internal
