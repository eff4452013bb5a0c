#include "graph_cut.h"

#include <algorithm>
#include <cstdlib>
#include <set>
#include <tuple>

#include <fmt/format.h>
#include <sotto/base/error.h>

namespace sotto::internal {
namespace {

/// The part while it grows.
class CutPart {
 public:
  explicit CutPart(const FileGraph& graph) : nodes_(static_cast<std::size_t>(graph.nodes)) {
    for (const Arc& arc : graph.arcs) {
      node(arc.from).tells.push_back(arc.to);
      node(arc.to).hears.push_back(arc.from);
    }
    for (Node& each : nodes_) {
      std::sort(each.tells.begin(), each.tells.end());
      std::sort(each.hears.begin(), each.hears.end());
    }
    const auto first =
        std::max_element(nodes_.begin(), nodes_.end(), [](const Node& a, const Node& b) {
          return std::min(a.tells.size(), a.hears.size()) <
                 std::min(b.tells.size(), b.hears.size());
        });
    add(static_cast<Rank>(first - nodes_.begin()));
  }

  const std::vector<Rank>& members() const { return members_; }

  /// Adds at most `room` nodes; false when no way leads out and back through that few.
  bool grow(std::size_t room) {
    if (candidates_.empty()) {
      return add_detour(room);
    }
    const Rank best = std::get<2>(*candidates_.begin());
    candidates_.erase(candidates_.begin());
    add(best);
    return true;
  }

 private:
  struct Node {
    std::vector<Rank> tells;  // sorted
    std::vector<Rank> hears;  // sorted
    bool member = false;
    // Edges to and from the part.
    int to = 0;
    int from = 0;
    int mutual = 0;  // counted in both
  };
  /// −(min(a, b) − |a − b|), edges that run both ways, rank: the lower, the better.
  using Candidate = std::tuple<int, int, Rank>;

  Node& node(Rank rank) { return nodes_[static_cast<std::size_t>(rank)]; }

  Candidate candidate(Rank rank) {
    const Node& at = node(rank);
    const int to = at.to - at.mutual;
    const int from = at.from - at.mutual;
    return {std::abs(to - from) - std::min(to, from), at.mutual, rank};
  }

  /// Adds a shortest path out of the part and back to it.
  bool add_detour(std::size_t room) {
    std::vector<Rank> came_from(nodes_.size(), -1);
    std::vector<Rank> reached = members_;
    for (std::size_t k = 0; k < reached.size(); ++k) {
      const Rank at = reached[k];
      if (k >= members_.size() && node(at).to > 0) {
        std::vector<Rank> path;
        for (Rank back = at; !node(back).member; back = came_from[static_cast<std::size_t>(back)]) {
          path.push_back(back);
        }
        const bool fits = path.size() <= room;
        for (std::size_t i = 0; fits && i < path.size(); ++i) {
          candidates_.erase(candidate(path[i]));
          add(path[i]);
        }
        return fits;
      }
      for (const Rank peer : node(at).tells) {
        Rank& parent = came_from[static_cast<std::size_t>(peer)];
        if (!node(peer).member && parent < 0) {
          parent = at;
          reached.push_back(peer);
        }
      }
    }
    return false;
  }

  void add(Rank rank) {
    Node& added = node(rank);
    added.member = true;
    members_.push_back(rank);
    for (const Rank peer : added.tells) {
      const bool mutual = std::binary_search(added.hears.begin(), added.hears.end(), peer);
      recount(peer, mutual ? 1 : 0, 1, mutual ? 1 : 0);
    }
    for (const Rank peer : added.hears) {
      if (!std::binary_search(added.tells.begin(), added.tells.end(), peer)) {
        recount(peer, 1, 0, 0);
      }
    }
  }

  void recount(Rank rank, int to, int from, int mutual) {
    Node& changed = node(rank);
    if (changed.member) {
      return;
    }
    candidates_.erase(candidate(rank));
    changed.to += to;
    changed.from += from;
    changed.mutual += mutual;
    if (changed.to > 0 && changed.from > 0) {
      candidates_.insert(candidate(rank));
    }
  }

  std::vector<Node> nodes_;
  std::vector<Rank> members_;
  std::set<Candidate> candidates_;
};

void require_no_weights(const FileGraph& graph, std::string_view option, std::string_view source) {
  if (!graph.weights.empty()) {
    refuse(source, option,
           "a part of a graph with weights would have other sums; leave out the column weight");
  }
}

}  // namespace

FileGraph strong_part(const FileGraph& graph, int nodes, std::string_view source) {
  require_no_weights(graph, "cut", source);
  CutPart part(graph);
  while (part.members().size() < static_cast<std::size_t>(nodes)) {
    if (!part.grow(static_cast<std::size_t>(nodes) - part.members().size())) {
      refuse(
          source, fmt::format("cut={}", nodes),
          fmt::format("a strongly connected part grew to {} nodes, and more could only join in a "
                      "larger group; take another N",
                      part.members().size()));
    }
  }
  std::vector<Rank> members = part.members();
  std::sort(members.begin(), members.end());
  std::vector<Rank> rank_of(static_cast<std::size_t>(graph.nodes), -1);
  for (std::size_t k = 0; k < members.size(); ++k) {
    rank_of[static_cast<std::size_t>(members[k])] = static_cast<Rank>(k);
  }
  FileGraph found{.nodes = nodes, .arcs = {}, .weights = {}, .self = {}};
  found.self.resize(members.size());
  for (const Arc& arc : graph.arcs) {
    const Rank from = rank_of[static_cast<std::size_t>(arc.from)];
    const Rank to = rank_of[static_cast<std::size_t>(arc.to)];
    if (from >= 0 && to >= 0) {
      found.arcs.push_back({from, to});
    }
  }
  return found;
}

void keep_mutual(FileGraph& graph, std::string_view source) {
  require_no_weights(graph, "mutual", source);
  std::vector<Arc> sorted = graph.arcs;
  std::sort(sorted.begin(), sorted.end());
  std::erase_if(graph.arcs, [&](const Arc& arc) {
    return !std::binary_search(sorted.begin(), sorted.end(), Arc{arc.to, arc.from});
  });
}

}  // namespace sotto::internal
