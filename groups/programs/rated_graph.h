// A graph whose edges carry ratings, which a graph network learns to tell (graph_network.h).
//
// Plain values; thread-safe.
#pragma once

#include <cstdint>
#include <vector>

#include <sotto/groups/halo.h>

namespace sotto {

/// A rating that is known.
struct GraphLink {
  std::uint32_t from = 0;
  std::uint32_t to = 0;
  bool positive = true;  ///< what the network learns to tell
  float weight = 1;      ///< weight in the loss, above 0
};

/// A graph. Links that several members know are in one order at all of them.
struct RatedGraph {
  std::vector<GraphEdge> edges;  ///< without direction, each once
  std::vector<int> owner;        ///< member of each node
  std::vector<float> features;   ///< a row a node; a member reads those of its own nodes only
  std::vector<GraphLink> links;  ///< what is learnt, each along an edge; others' may be left out
  /// Sum of the weights of the links of all members. 0: `links` has all of them.
  double total_weight = 0;

  /// The sum of the weights of the links of all members. Throws Error (fields "links" and
  /// "total_weight") for a link along no edge, and for weights that are not finite or not above 0.
  double weight_of_all() const;
  /// A digest of what all members must know alike, beside `seed`, one of owners and boundaries.
  /// Throws Error as weight_of_all.
  std::uint64_t digest(std::uint64_t seed) const;
};

}  // namespace sotto
