// The graphs that the planner considers: the usual ones, and on links that differ, those that keep
// to the quick ones. Pure functions; thread-safe.
//
// A round waits for its slowest link, so the planner seeks graphs with a quick slowest link:
// the tree (Kruskal: a minimum spanning tree is a bottleneck tree too), the ring and the chain
// (nearest neighbours, then 2-opt: Croes 1958), the star round the best hub, and the graph of the
// quickest links up to four a node, as soon as it is connected.
#pragma once

#include <string>
#include <vector>

#include <sotto/study/scenario/scenario.h>

namespace sotto::study {

/// A graph that the planner considers.
struct PlannedGraph {
  std::string spec;   ///< the graph as --topology takes it
  std::string label;  ///< a short name where the spec lists edges; else the spec
};

/// Graphs for frames of `model_bytes`, and for those of a 32nd of that. Graphs of listed edges are
/// made for networks of links or hosts that differ, with 3 to 32 nodes.
std::vector<PlannedGraph> planned_graphs(const Scenario& scenario, double model_bytes);

}  // namespace sotto::study
