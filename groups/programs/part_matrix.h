// The rows of a part of a graph in Â = D^{-1/2} (A + I) D^{-1/2}, A the edges and D the degrees
// with loops: the matrix of a graph convolution (Kipf and Welling, arXiv:1609.02907).
//
// A value; thread-safe once it is made.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <sotto/groups/halo.h>

namespace sotto {

class PartMatrix {
 public:
  /// The matrix of a graph with these edges, each once, and so many nodes. Throws Error (field
  /// "edges") for one that stands twice, in either direction, or leads to where it begins. `row_of`
  /// has, by node of the graph, its row among those of the part's own nodes, and behind them those
  /// of its halo; that of a node that the part has none of is not read.
  PartMatrix(const GraphPart& part, std::span<const GraphEdge> edges,
             std::span<const std::uint32_t> row_of);

  /// out ← Â rows, for `width` elements a row: `rows` are those of own nodes and of the halo, `out`
  /// those of own nodes. A sum goes by number of the graph's node.
  void multiply(std::span<const float> rows, std::size_t width, std::span<float> out) const;

 private:
  /// A neighbour of an own node, or the node itself.
  struct Neighbour {
    std::uint32_t row;
    float weight;  ///< element of Â
  };

  std::vector<std::size_t> begins_;  // where the neighbours of each own node begin
  std::vector<Neighbour> neighbours_;
};

}  // namespace sotto
