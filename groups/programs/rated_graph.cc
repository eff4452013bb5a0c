#include <sotto/groups/programs/rated_graph.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include <sotto/base/bytes.h>
#include <sotto/base/error.h>
#include <sotto/base/xxh3.h>

namespace sotto {

double RatedGraph::weight_of_all() const {
  const std::vector<GraphEdge> known = sorted_edges(edges);
  double sum = 0;
  for (const GraphLink& link : links) {
    const GraphEdge edge(std::min(link.from, link.to), std::max(link.from, link.to));
    if (!std::ranges::binary_search(known, edge) || !(link.weight > 0) ||
        !std::isfinite(link.weight)) {
      refuse("links", fmt::format("{}-{} of weight {}", link.from, link.to, link.weight),
             "links go along edges of the graph, with finite weights above 0");
    }
    sum += static_cast<double>(link.weight);
  }
  if (total_weight == 0) {
    return sum;
  }
  if (!(total_weight > 0) || !std::isfinite(total_weight)) {
    refuse("total_weight", fmt::format("{}", total_weight), "it is finite and above 0");
  }
  return total_weight;
}

std::uint64_t RatedGraph::digest(std::uint64_t seed) const {
  ByteBuffer all;
  for (const auto& [a, b] : sorted_edges(edges)) {
    all.write(a);
    all.write(b);
  }
  all.write(weight_of_all());
  return xxh3(all.bytes(), seed);
}

}  // namespace sotto
