// From a bare graph to mixing weights. Pure functions; thread-safe.
#pragma once

#include <vector>

#include <sotto/topology/topology.h>

namespace sotto::internal {

/// A directed edge without a weight.
struct Arc {
  Rank from = 0;
  Rank to = 0;

  friend bool operator==(const Arc&, const Arc&) = default;
  friend bool operator<(const Arc& a, const Arc& b) {
    return a.from != b.from ? a.from < b.from : a.to < b.to;
  }
};

/// The sums that self-weights complete to 1: of the shares that a node hears, or of those it gives.
enum class Completion { rows, columns };

/// Rounds the weights to float32 values in place, and returns the self-weights that complete each
/// row (or column) to 1.
///
/// The sums are exact in real arithmetic. A self-weight below 2^k is a float32 only if it is a
/// multiple of 2^(k − 24), so the weights beside it are rounded to that grid. Both ends of an edge
/// count, hence symmetric weights stay symmetric. A weight far below its grid (under 2^-25 beside a
/// self-weight near 1) is kept instead, and its row is then within half a unit of 1.
std::vector<double> complete_weights(int nodes, Completion completion,
                                     std::vector<WeightedEdge>& edges);

/// The edges of one round with their weights, and explicit self-weights where rows do not simply
/// complete to 1 (empty otherwise).
struct Weights {
  std::vector<WeightedEdge> edges;
  std::vector<double> self;
};

/// Weights a graph without self-loops or duplicates by the formulas of `Weighting`; `lazy` gives
/// (I + W) / 2. Metropolis requires every arc to have its opposite.
Weights weigh(int nodes, const std::vector<Arc>& arcs, Weighting weighting, bool lazy);

/// True when every arc has its opposite.
bool is_undirected(std::vector<Arc> arcs);

}  // namespace sotto::internal
