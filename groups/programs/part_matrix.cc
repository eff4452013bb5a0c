#include <sotto/groups/programs/part_matrix.h>

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include <sotto/base/error.h>

namespace sotto {
namespace {

/// A matrix would count an edge that stands twice twofold, and has a loop for each node anyway.
void require_simple(std::span<const GraphEdge> edges) {
  const auto loop =
      std::ranges::find_if(edges, [](const GraphEdge& edge) { return edge.first == edge.second; });
  if (loop != edges.end()) {
    refuse("edges", fmt::format("{}-{}", loop->first, loop->second),
           "it leads to where it begins; leave it out, for the matrix has a loop for each node");
  }
  const std::vector<GraphEdge> sorted = sorted_edges(edges);
  if (const auto twice = std::ranges::adjacent_find(sorted); twice != sorted.end()) {
    refuse("edges", fmt::format("{}-{}", twice->first, twice->second),
           "it stands twice; give each edge once, in one of its directions");
  }
}

}  // namespace

PartMatrix::PartMatrix(const GraphPart& part, std::span<const GraphEdge> edges,
                       std::span<const std::uint32_t> row_of) {
  require_simple(edges);
  std::vector<std::uint32_t> degrees(row_of.size(), 1);
  std::vector<std::vector<std::uint32_t>> near(part.own.size());
  for (std::size_t v = 0; v < near.size(); ++v) {
    near[v].push_back(part.own[v]);
  }
  for (const auto& [a, b] : edges) {
    ++degrees[a];
    ++degrees[b];
    if (row_of[a] < near.size()) {
      near[row_of[a]].push_back(b);
    }
    if (row_of[b] < near.size()) {
      near[row_of[b]].push_back(a);
    }
  }
  begins_.push_back(0);
  for (std::size_t v = 0; v < near.size(); ++v) {
    std::ranges::sort(near[v]);
    for (const std::uint32_t u : near[v]) {
      const double product = static_cast<double>(degrees[u]) * degrees[part.own[v]];
      neighbours_.push_back({row_of[u], static_cast<float>(1 / std::sqrt(product))});
    }
    begins_.push_back(neighbours_.size());
  }
}

void PartMatrix::multiply(std::span<const float> rows, std::size_t width,
                          std::span<float> out) const {
  std::ranges::fill(out, 0.0F);
  for (std::size_t v = 0; v + 1 < begins_.size(); ++v) {
    const auto sum = out.subspan(v * width, width);
    for (std::size_t n = begins_[v]; n < begins_[v + 1]; ++n) {
      const auto row = rows.subspan(neighbours_[n].row * width, width);
      for (std::size_t i = 0; i < width; ++i) {
        sum[i] += neighbours_[n].weight * row[i];
      }
    }
  }
}

}  // namespace sotto
