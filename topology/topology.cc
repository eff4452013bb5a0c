#include <sotto/topology/topology.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>
#include <sotto/base/check.h>
#include <sotto/base/error.h>

#include "internal/examine.h"
#include "internal/weights.h"

namespace sotto {
namespace {

/// Weights into a node may exceed 1 by this much, for files with few digits.
constexpr double kSumTolerance = 1e-6;

/// Refuses what a graph is made of; `name` is the graph's.
[[noreturn]] void refuse_part(std::string_view name, std::string_view value,
                              std::string_view reason) {
  throw Error("topology", fmt::format("{}: '{}' is refused: {}", name, value, reason));
}

void validate(const std::string& name, int nodes, const std::vector<WeightedEdge>& edges) {
  for (const WeightedEdge& edge : edges) {
    const std::string value = fmt::format("{} -> {}", edge.from, edge.to);
    if (edge.from < 0 || edge.from >= nodes || edge.to < 0 || edge.to >= nodes) {
      refuse_part(name, value, fmt::format("ranks go from 0 to {}", nodes - 1));
    }
    if (edge.from == edge.to) {
      refuse_part(name, value, "a node's weight for itself is no edge");
    }
    const auto weight = static_cast<float>(edge.weight);
    if (!std::isfinite(weight) || !(weight > 0)) {
      refuse_part(name, value,
                  fmt::format("weight {} is not a finite, positive 32-bit float", edge.weight));
    }
  }
}

std::vector<float> to_floats(const std::vector<double>& values) {
  std::vector<float> floats(values.size());
  std::transform(values.begin(), values.end(), floats.begin(),
                 [](double value) { return static_cast<float>(value); });
  return floats;
}

std::vector<float> completed_self_weights(const std::string& name, int nodes,
                                          std::vector<WeightedEdge>& edges) {
  const std::vector<double> self =
      internal::complete_weights(nodes, internal::Completion::rows, edges);
  for (std::size_t i = 0; i < self.size(); ++i) {
    if (self[i] < -kSumTolerance) {
      refuse_part(name, fmt::format("node {}", i),
                  fmt::format("the weights of what it hears sum to {}, more than 1", 1 - self[i]));
    }
  }
  return to_floats(self);
}

std::vector<float> given_self_weights(const std::string& name, int nodes,
                                      const std::vector<double>& self) {
  if (self.size() != static_cast<std::size_t>(nodes)) {
    refuse_part(name, fmt::format("{} self-weights", self.size()),
                fmt::format("there are {} nodes", nodes));
  }
  for (std::size_t i = 0; i < self.size(); ++i) {
    if (!std::isfinite(static_cast<float>(self[i])) || self[i] < 0) {
      refuse_part(name, fmt::format("node {}", i),
                  fmt::format("self-weight {} is not finite and at least 0", self[i]));
    }
  }
  return to_floats(self);
}

}  // namespace

Topology::Topology(std::string name, int nodes, std::vector<std::vector<WeightedEdge>> rounds,
                   std::vector<std::vector<double>> self_weights)
    : name_(std::move(name)), nodes_(nodes), period_(rounds.size()) {
  if (nodes < 1) {
    refuse_part(name_, fmt::format("{} nodes", nodes), "a graph has at least one node");
  }
  if (rounds.empty() || (!self_weights.empty() && self_weights.size() != rounds.size())) {
    refuse_part(name_,
                fmt::format("{} rounds, {} self-weights", rounds.size(), self_weights.size()),
                "give at least one round, and self-weights for all of them or for none");
  }
  graphs_.reserve(rounds.size());
  for (std::size_t k = 0; k < rounds.size(); ++k) {
    std::vector<WeightedEdge>& edges = rounds[k];
    validate(name_, nodes, edges);
    Graph graph;
    graph.self = self_weights.empty() ? completed_self_weights(name_, nodes, edges)
                                      : given_self_weights(name_, nodes, self_weights[k]);
    graph.in = make_rows(nodes, edges, &WeightedEdge::to, &WeightedEdge::from);
    graph.out = make_rows(nodes, edges, &WeightedEdge::from, &WeightedEdge::to);
    for (Rank node = 0; node < nodes; ++node) {
      const auto in = graph.in.of(node);
      const auto twice = std::adjacent_find(
          in.begin(), in.end(), [](const Edge& a, const Edge& b) { return a.peer == b.peer; });
      if (twice != in.end()) {
        refuse_part(name_, fmt::format("{} -> {}", twice->peer, node), "the edge is there twice");
      }
    }
    graphs_.push_back(std::move(graph));
    std::vector<WeightedEdge>().swap(edges);
  }
  properties_ = std::make_shared<const GraphProperties>(internal::examine(*this));
}

Topology::Rows Topology::make_rows(int nodes, const std::vector<WeightedEdge>& edges,
                                   Rank WeightedEdge::*owner, Rank WeightedEdge::*peer) {
  Rows rows;
  rows.begin.assign(static_cast<std::size_t>(nodes) + 1, 0);
  for (const WeightedEdge& edge : edges) {
    ++rows.begin[static_cast<std::size_t>(edge.*owner) + 1];
  }
  for (std::size_t i = 1; i < rows.begin.size(); ++i) {
    rows.begin[i] += rows.begin[i - 1];
  }
  rows.edges.resize(edges.size());
  std::vector<std::size_t> next(rows.begin.begin(), rows.begin.end() - 1);
  for (const WeightedEdge& edge : edges) {
    rows.edges[next[static_cast<std::size_t>(edge.*owner)]++] = {edge.*peer,
                                                                 static_cast<float>(edge.weight)};
  }
  for (std::size_t i = 0; i + 1 < rows.begin.size(); ++i) {
    const auto first = rows.edges.begin();
    std::sort(first + static_cast<std::ptrdiff_t>(rows.begin[i]),
              first + static_cast<std::ptrdiff_t>(rows.begin[i + 1]),
              [](const Edge& a, const Edge& b) { return a.peer < b.peer; });
  }
  return rows;
}

std::span<const Edge> Topology::Rows::of(Rank node) const {
  check(node >= 0 && static_cast<std::size_t>(node) + 1 < begin.size(), "a node of the topology");
  const auto i = static_cast<std::size_t>(node);
  return std::span(edges).subspan(begin[i], begin[i + 1] - begin[i]);
}

std::span<const Edge> Topology::in_edges(Rank node, Round round) const {
  return graph(round).in.of(node);
}

std::span<const Edge> Topology::out_edges(Rank node, Round round) const {
  return graph(round).out.of(node);
}

float Topology::self_weight(Rank node, Round round) const {
  check(node >= 0 && node < nodes_, "a node of the topology");
  return graph(round).self[static_cast<std::size_t>(node)];
}

std::vector<Rank> Topology::peers(Rank node, Rows Graph::*direction) const {
  std::vector<Rank> ranks;
  for (const Graph& graph : graphs_) {
    for (const Edge& edge : (graph.*direction).of(node)) {
      ranks.push_back(edge.peer);
    }
  }
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  return ranks;
}

std::vector<Rank> Topology::in_peers(Rank node) const { return peers(node, &Graph::in); }

std::vector<Rank> Topology::out_peers(Rank node) const { return peers(node, &Graph::out); }

std::size_t Topology::edge_count(Round round) const { return graph(round).in.edges.size(); }

}  // namespace sotto
