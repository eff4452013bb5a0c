// The communication graph and its mixing weights.
//
// A topology is immutable after construction, so it may be shared by any number of threads. It may
// vary in time with a period: `round` selects the graph of that round.
//
// Weights are float32 values. `self_weight` completes each row to exactly 1 in real arithmetic, so
// that mixing equal models many times neither grows nor shrinks them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <sotto/base/ids.h>

namespace sotto {

/// One end of a directed edge as one node sees it, with the weight W_ij with which the receiving
/// node i mixes what the sending node j says.
struct Edge {
  Rank peer = 0;
  float weight = 0;
};

/// A directed edge with its weight, for building a topology.
struct WeightedEdge {
  Rank from = 0;
  Rank to = 0;
  double weight = 0;
};

/// How to weight a graph that comes without weights.
enum class Weighting {
  metropolis,  ///< W_ij = 1 / (1 + max(deg i, deg j)); undirected graphs (Metropolis–Hastings)
  uniform,     ///< W_ij = 1 / (1 + in-degree i): an average over the closed in-neighbourhood
  shares,      ///< P_ij = 1 / (1 + out-degree j): equal shares of the sender, columns sum to 1
};

struct GraphProperties;  // properties.h

class Topology {
 public:
  /// `rounds[k]` holds the edges of every round t with t % rounds.size() == k, self-loops left out.
  /// Row i's self-weight is 1 − Σ_j W_ij, unless `self_weights[k]` (n numbers each) is given. Where
  /// it is not, edge weights may be rounded by a few 1e-8 so that all of a row are float32 values
  /// with the sum 1 (symmetric weights stay symmetric). Throws Error for a rank outside 0 …
  /// nodes−1, a self-loop, a duplicate edge, a weight that is not finite or not positive, or a row
  /// with edges that already sum to more than 1.
  Topology(std::string name, int nodes, std::vector<std::vector<WeightedEdge>> rounds,
           std::vector<std::vector<double>> self_weights = {});

  const std::string& name() const { return name_; }
  int nodes() const { return nodes_; }
  /// Number of distinct graphs; 1 when the graph does not vary.
  Round period() const { return period_; }
  bool time_varying() const { return period_ > 1; }

  /// The in-edges of `node` in `round`, without the self-loop, sorted by peer; the weight is
  /// W_{node,peer}.
  std::span<const Edge> in_edges(Rank node, Round round) const;
  /// Edges to the nodes that hear `node` in `round`, without itself, sorted by peer;
  /// W_{peer,node} as weight.
  std::span<const Edge> out_edges(Rank node, Round round) const;
  /// W_{node,node} in `round`.
  float self_weight(Rank node, Round round) const;

  /// The peers, sorted, that `node` receives from in any round.
  std::vector<Rank> in_peers(Rank node) const;
  /// The peers, sorted, that `node` sends to in any round.
  std::vector<Rank> out_peers(Rank node) const;

  /// Directed edges of that round, self-loops not counted.
  std::size_t edge_count(Round round) const;

  /// Found once, at construction: see properties.h.
  friend GraphProperties properties(const Topology& topology);

 private:
  /// Compressed sparse rows: the edges of node i are edges[begin[i] … begin[i + 1]).
  struct Rows {
    std::vector<std::size_t> begin;
    std::vector<Edge> edges;
    /// The edges of one node's row.
    std::span<const Edge> of(Rank node) const;
  };
  struct Graph {
    Rows in;
    Rows out;
    std::vector<float> self;
  };
  static Rows make_rows(int nodes, const std::vector<WeightedEdge>& edges,
                        Rank WeightedEdge::*owner, Rank WeightedEdge::*peer);
  std::vector<Rank> peers(Rank node, Rows Graph::*direction) const;
  const Graph& graph(Round round) const { return graphs_[period_ == 1 ? 0 : round % period_]; }

  std::string name_;
  int nodes_ = 0;
  Round period_ = 1;
  std::vector<Graph> graphs_;
  std::shared_ptr<const GraphProperties> properties_;
};

}  // namespace sotto
