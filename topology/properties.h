// Properties of a graph and its mixing matrix: degrees, connectivity, stochasticity. Pure
// functions; thread-safe.
#pragma once

#include <cstddef>

#include <sotto/topology/topology.h>

namespace sotto {

/// Properties that algorithms ask for. Sums are taken to within 1e-6.
struct GraphProperties {
  bool directed = false;   ///< some edge of some round has no opposite edge in that round
  bool symmetric = false;  ///< W = Wᵀ in every round
  bool row_stochastic = false;
  bool column_stochastic = false;
  bool connected = false;  ///< strongly, over the union of all rounds
  int degree_min = 0;      ///< least in-neighbours without the node itself, over nodes and rounds
  int degree_max = 0;
  std::size_t edges = 0;  ///< edges in the union of all rounds; an undirected edge counts once

  bool doubly_stochastic() const { return row_stochastic && column_stochastic; }
};

/// Costs nothing: a topology examines itself when it is built.
GraphProperties properties(const Topology& topology);

}  // namespace sotto
