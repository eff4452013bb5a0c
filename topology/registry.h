// Topologies by name: `torus:2x4` and a node count → a graph. Pure functions; thread-safe.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include <sotto/topology/topology.h>

namespace sotto {

/// One family of graphs, as `sotto list` shows it.
struct TopologyInfo {
  std::string_view name;      ///< the family's name, "torus"
  std::string_view synopsis;  ///< form of its specification, "torus:RxC"
  std::string_view summary;   ///< one sentence
  std::string_view nodes;     ///< node counts that it takes, in words
  std::string_view example;
  bool directed = false;
  bool time_varying = false;
  bool argument_fixes_nodes = false;  ///< torus:2x4 has 8 nodes, and no other number
};

/// All families of graphs, in the order in which they are listed.
std::span<const TopologyInfo> topologies();

/// Options of a graph besides its specification.
struct TopologyOptions {
  /// The weights to use; by default the weights of a file or of base:K itself; else Metropolis for
  /// undirected graphs, uniform for directed families (they are regular), shares for directed
  /// files.
  std::optional<Weighting> weighting = std::nullopt;
  /// Replace W by (I + W) / 2.
  bool lazy = false;
  /// Seed of random graphs; matchings are drawn by (seed, number).
  std::uint64_t seed = 0;
};

/// Whether `spec` says how many nodes its graph has, so that make_topology takes 0 for them.
bool fixes_nodes(std::string_view spec);

/// Builds the graph that `spec` names for `nodes` nodes; 0 takes the count that the spec itself
/// fixes (`file:GRAPH.csv`, `torus:2x4`). A file's weights are those with which `to` mixes what
/// `from` says; a self-loop is a node's own weight and is taken as it is, a node without one
/// completes its row to 1. `threshold=R` keeps ratings from R on (else those above 0); `cut=N` then
/// takes a strongly connected part of N nodes, rich in edges that run one way, with ranks in the
/// order of the file's; `mutual` of that only edges that run both ways, however they connect.
/// Throws Error naming the spec, what fails and what would do.
std::shared_ptr<const Topology> make_topology(std::string_view spec, int nodes,
                                              const TopologyOptions& options = {});

/// The names that parse_weighting takes.
std::vector<std::string> weighting_names();

/// "metropolis", "uniform" or "shares"; throws Error for anything else.
Weighting parse_weighting(std::string_view name);

}  // namespace sotto
