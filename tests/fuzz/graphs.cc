#include "graphs.h"

#include <cmath>
#include <memory>
#include <string>

#include <sotto/base/bytes.h>
#include <sotto/base/check.h>
#include <sotto/base/error.h>
#include <sotto/topology/internal/graph_file.h>
#include <sotto/topology/properties.h>
#include <sotto/topology/registry.h>

namespace sotto_fuzz {
namespace {

using sotto::check;

/// Larger graphs are right as well, but slow to fuzz.
constexpr int kMostNodes = 2000;

std::string text_after(sotto::ByteReader& in) {
  const auto rest = in.take(in.remaining());
  return {reinterpret_cast<const char*>(rest.data()), rest.size()};
}

void check_topology(const sotto::Topology& topology) {
  for (sotto::Round round = 0; round < topology.period(); ++round) {
    for (sotto::Rank node = 0; node < topology.nodes(); ++node) {
      const float self = topology.self_weight(node, round);
      check(std::isfinite(self) && self >= -2e-6F, "own weights are finite and not negative");
      for (const sotto::Edge& edge : topology.in_edges(node, round)) {
        check(edge.peer >= 0 && edge.peer < topology.nodes() && edge.peer != node,
              "an edge joins two nodes of the graph");
        check(std::isfinite(edge.weight) && edge.weight > 0, "edges have positive weights");
      }
    }
  }
}

}  // namespace

void read_graph(std::string_view /*name*/, std::span<const std::byte> input) {
  sotto::ByteReader in(input);
  const int nodes = in.read<std::uint8_t>();
  const std::string text = text_after(in);
  try {
    const auto graph = sotto::internal::parse_graph(text, "graph.csv", nodes);
    check(nodes == 0 || graph.nodes == nodes, "the node count asked for");
    if (graph.nodes > kMostNodes) {
      return;
    }
    auto weights = graph.weights.empty()
                       ? sotto::internal::weigh(graph.nodes, graph.arcs, sotto::Weighting::shares,
                                                /*lazy=*/false)
                       : sotto::internal::file_weights(graph, "graph.csv", /*lazy=*/false);
    std::vector<std::vector<double>> self;
    if (!weights.self.empty()) {
      self.push_back(std::move(weights.self));
    }
    check_topology(sotto::Topology("file:graph.csv", graph.nodes, {std::move(weights.edges)},
                                   std::move(self)));
  } catch (const sotto::Error&) {
    return;
  }
}

void name_topology(std::string_view /*name*/, std::span<const std::byte> input) {
  sotto::ByteReader in(input);
  const int nodes = in.read<std::uint8_t>();
  const std::string spec = text_after(in);
  if (nodes == 0 || spec.starts_with("file")) {
    return;
  }
  std::shared_ptr<const sotto::Topology> topology;
  try {
    topology = sotto::make_topology(spec, nodes);
  } catch (const sotto::Error&) {
    return;
  }
  check_topology(*topology);
  const sotto::GraphProperties graph = properties(*topology);
  // A list of edges is the user's, as a file is.
  check(graph.connected || spec.starts_with("edges"), "families are connected");
  check(graph.doubly_stochastic(), "weights are stochastic");
  const auto again = sotto::make_topology(topology->name(), nodes);
  check(again->name() == topology->name(), "a full name builds the same graph");
}

}  // namespace sotto_fuzz
