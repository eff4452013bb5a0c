// Parts of a graph from a file. Pure functions; thread-safe.
#pragma once

#include <string_view>

#include "graph_file.h"

namespace sotto::internal {

/// A strongly connected part of `graph` that has exactly `nodes` nodes, with all edges among them.
/// Ranks are given anew, in the order of the old ones.
///
/// It grows from the node that many trust and that trusts many (the largest of the smaller of the
/// two numbers), one node at a time: of those that an edge reaches from the part and that reach the
/// part by an edge, so that it stays strongly connected, the one with the largest
/// min(a, b) − |a − b|, where a and b are its edges to and from the part that run one way only;
/// then the one with the fewest that run both ways, then the lowest rank. Where there is none, a
/// shortest path out of the part and back to it joins. The part is thus rich in
/// one-sided edges but balanced: a node that gives far more than it gets would keep little of
/// push-sum's mass ω. Throws Error naming `source` for weights, which a cut would leave with other
/// sums, and where no such part can be grown.
FileGraph strong_part(const FileGraph& graph, int nodes, std::string_view source);

/// Leaves only edges that have their opposite. Throws Error naming `source` for weights.
void keep_mutual(FileGraph& graph, std::string_view source);

}  // namespace sotto::internal
