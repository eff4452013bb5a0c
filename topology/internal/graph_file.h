// Graphs from lists of edges, a line each, their columns set apart by commas, tabs, semicolons or
// blanks: below a header `from,to,weight`, `from,to` or `from,to,rating` in any case, or without
// one. Other programs' names for columns are known (Gephi's Source, Target, Type, Weight; SNAP's
// FromNodeId), and what they add is passed over; lines with # or % are comments, which may say that
// the graph is undirected. In files with sotto's header nodes are ranks, in others their numbers
// are names, and they are numbered anew in ascending order. Bounded; any bytes give a graph or an
// Error that names file, line and column. Thread-safe.
//
// A rating says how far `from` trusts `to`, on any scale: an edge is there where it reaches a
// threshold, or without one where it is positive.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weights.h"

namespace sotto::internal {

/// Larger files are refused.
inline constexpr std::size_t kMostGraphFileBytes = std::size_t{64} << 20;

struct FileGraph {
  int nodes = 0;
  std::vector<Arc> arcs;  ///< edges in the file's order, without self-loops
  /// The weight with which `to` mixes what `from` says, for each arc; empty without that column.
  std::vector<double> weights;
  /// Own weights of the nodes that have a self-loop with a weight.
  std::vector<std::optional<double>> self;
};

/// Parses the contents of the file called `source`; `nodes` 0 takes the highest rank + 1. A
/// threshold needs ratings.
FileGraph parse_graph(std::string_view text, std::string_view source, int nodes,
                      std::optional<double> threshold = std::nullopt);

/// Reads a whole file of at most kMostGraphFileBytes.
std::string read_graph_text(const std::string& path);

/// The file's own weights. Where no node has a self-loop, rows complete to 1 exactly; where some
/// have, their own weights are taken as they are, and only the others' rows complete to 1. `lazy`
/// gives (I + W) / 2. Throws Error when a row to be completed already sums to more than 1.
Weights file_weights(const FileGraph& graph, std::string_view source, bool lazy);

}  // namespace sotto::internal
