#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "internal/examine.h"

namespace sotto {
namespace {

constexpr double kTolerance = 1e-6;

bool near(double a, double b) { return std::abs(a - b) <= kTolerance; }

bool same_peers(std::span<const Edge> a, std::span<const Edge> b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const Edge& x, const Edge& y) { return x.peer == y.peer; });
}

bool same_weights(std::span<const Edge> a, std::span<const Edge> b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Edge& x, const Edge& y) {
    return near(static_cast<double>(x.weight), static_cast<double>(y.weight));
  });
}

double sum_with_self(const Topology& topology, Rank node, Round round,
                     std::span<const Edge> edges) {
  double sum = static_cast<double>(topology.self_weight(node, round));
  for (const Edge& edge : edges) {
    sum += static_cast<double>(edge.weight);
  }
  return sum;
}

/// Whether node 0 reaches everyone along `peers`.
bool reaches_all(const std::vector<std::vector<Rank>>& peers) {
  std::vector<bool> seen(peers.size());
  std::vector<Rank> frontier = {0};
  seen[0] = true;
  std::size_t count = 1;
  while (!frontier.empty()) {
    const Rank node = frontier.back();
    frontier.pop_back();
    for (const Rank peer : peers[static_cast<std::size_t>(node)]) {
      if (!seen[static_cast<std::size_t>(peer)]) {
        seen[static_cast<std::size_t>(peer)] = true;
        ++count;
        frontier.push_back(peer);
      }
    }
  }
  return count == peers.size();
}

}  // namespace

namespace internal {

GraphProperties examine(const Topology& topology) {
  GraphProperties graph;
  graph.symmetric = true;
  graph.row_stochastic = true;
  graph.column_stochastic = true;
  graph.degree_min = std::numeric_limits<int>::max();
  std::vector<std::vector<Rank>> in_peers;
  std::vector<std::vector<Rank>> out_peers;
  for (Rank node = 0; node < topology.nodes(); ++node) {
    for (Round round = 0; round < topology.period(); ++round) {
      const auto in = topology.in_edges(node, round);
      const auto out = topology.out_edges(node, round);
      const bool mutual = same_peers(in, out);
      graph.directed |= !mutual;
      graph.symmetric &= mutual && same_weights(in, out);
      graph.row_stochastic &= near(sum_with_self(topology, node, round, in), 1);
      graph.column_stochastic &= near(sum_with_self(topology, node, round, out), 1);
      graph.degree_min = std::min(graph.degree_min, static_cast<int>(in.size()));
      graph.degree_max = std::max(graph.degree_max, static_cast<int>(in.size()));
    }
    in_peers.push_back(topology.in_peers(node));
    out_peers.push_back(topology.out_peers(node));
    graph.edges += in_peers.back().size();
  }
  graph.connected = reaches_all(in_peers) && reaches_all(out_peers);
  if (!graph.directed) {
    graph.edges /= 2;
  }
  return graph;
}

}  // namespace internal

GraphProperties properties(const Topology& topology) { return *topology.properties_; }

}  // namespace sotto
