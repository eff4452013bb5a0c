#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

#include <sotto/base/number.h>

#include "families.h"

namespace sotto::internal {
namespace {

constexpr std::string_view kForm = "edges are pairs of ranks, e.g. edges:0-1,1-2";

/// "A-B"
Arc parse_edge(std::string_view word, const GraphRequest& request) {
  const std::size_t dash = word.find('-');
  const auto from = parse_number<Rank>(word.substr(0, dash));
  const auto to = parse_number<Rank>(word.substr(std::min(dash, word.size() - 1) + 1));
  if (!from || !to || *from == *to) {
    refuse_graph(request, kForm);
  }
  return {*from, *to};
}

/// An edge may be listed from either of its ends, or from both, as graphs with directions are
/// written; but not twice from one.
void refuse_repeated(const std::vector<Arc>& edges, const GraphRequest& request) {
  std::map<std::pair<Rank, Rank>, std::size_t> places;
  for (std::size_t i = 0; i < edges.size(); ++i) {
    const auto& [from, to] = edges[i];
    const auto [first, fresh] = places.emplace(std::pair(from, to), i + 1);
    if (!fresh) {
      refuse_graph(request, fmt::format("edge {}, {}-{}, is edge {} once more", i + 1, from, to,
                                        first->second));
    }
  }
}

}  // namespace

Blueprint listed_edges(const GraphRequest& request) {
  std::vector<Arc> edges;
  Rank last = 0;
  std::string_view text = request.argument;
  for (std::size_t comma = 0; comma != std::string_view::npos;) {
    comma = text.find(',');
    edges.push_back(parse_edge(text.substr(0, comma), request));
    last = std::max({last, edges.back().from, edges.back().to});
    text.remove_prefix(comma == std::string_view::npos ? text.size() : comma + 1);
  }
  refuse_repeated(edges, request);
  if (request.nodes != 0 && last >= request.nodes) {
    refuse_graph(request, fmt::format("{} nodes have the ranks 0 to {}, and {} is none",
                                      request.nodes, request.nodes - 1, last));
  }
  if (last >= kMostNodes) {
    refuse_graph(request, fmt::format("node {}; any rank below {} does", last, kMostNodes));
  }
  return {std::string(request.spec),
          request.nodes != 0 ? request.nodes : last + 1,
          {both_ways(std::move(edges))}};
}

}  // namespace sotto::internal
