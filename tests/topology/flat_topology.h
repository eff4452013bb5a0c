// The graph of single nodes that mixes as a graph of groups does.
#pragma once

#include <utility>
#include <vector>

#include <sotto/topology/node_groups.h>
#include <sotto/topology/topology.h>

namespace sotto::test {

/// W ⊗ (1/g) 11ᵀ for groups of g equal members, with the weights W between groups.
inline Topology flat_topology(const Topology& between, const NodeGroups& groups) {
  const double share = 1.0 / groups.size();
  std::vector<std::vector<WeightedEdge>> rounds(between.period());
  std::vector<std::vector<double>> selves(between.period());
  for (Round round = 0; round < between.period(); ++round) {
    selves[round].resize(static_cast<std::size_t>(groups.nodes()));
    for (Rank to = 0; to < groups.nodes(); ++to) {
      const int own = groups.group_of(to);
      const auto add = [&](int group, double weight) {
        for (const Rank from : groups.members(group)) {
          if (from == to) {
            selves[round][static_cast<std::size_t>(to)] = share * weight;
          } else if (weight > 0) {
            rounds[round].push_back({.from = from, .to = to, .weight = share * weight});
          }
        }
      };
      add(own, between.self_weight(own, round));
      for (const Edge& edge : between.in_edges(own, round)) {
        add(edge.peer, edge.weight);
      }
    }
  }
  return {between.name() + " of groups", groups.nodes(), std::move(rounds), std::move(selves)};
}

}  // namespace sotto::test
