#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "families.h"

namespace sotto::internal {
namespace {

constexpr std::string_view kForm = "edges are pairs of ranks, e.g. edges:0-1,1-2";

/// Takes "A-B" off the front.
Arc take_edge(std::string_view& text, const GraphRequest& request) {
  Arc edge;
  const char* const end = text.data() + text.size();
  const auto from = std::from_chars(text.data(), end, edge.from);
  if (from.ec != std::errc() || from.ptr == end || *from.ptr != '-') {
    refuse_graph(request, kForm);
  }
  const auto to = std::from_chars(from.ptr + 1, end, edge.to);
  if (to.ec != std::errc() || edge.from < 0 || edge.to < 0 || edge.from == edge.to ||
      (to.ptr != end && (*to.ptr != ',' || to.ptr + 1 == end))) {
    refuse_graph(request, kForm);
  }
  text = to.ptr == end ? std::string_view() : std::string_view(to.ptr + 1, end);
  return edge;
}

}  // namespace

Blueprint listed_edges(const GraphRequest& request) {
  std::vector<Arc> edges;
  Rank last = 0;
  for (std::string_view text = request.argument; !text.empty();) {
    edges.push_back(take_edge(text, request));
    last = std::max({last, edges.back().from, edges.back().to});
  }
  if (request.nodes != 0 && last >= request.nodes) {
    refuse_graph(request, fmt::format("{} nodes have the ranks 0 to {}, and {} is none",
                                      request.nodes, request.nodes - 1, last));
  }
  if (last >= kMaxNodes) {
    refuse_graph(request, fmt::format("node {}; any rank below {} does", last, kMaxNodes));
  }
  return {std::string(request.spec),
          request.nodes != 0 ? request.nodes : last + 1,
          {both_ways(std::move(edges))}};
}

}  // namespace sotto::internal
