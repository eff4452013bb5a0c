// The families of graphs without weights, each as a pure function from a request to edges.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "weights.h"

namespace sotto::internal {

/// Larger requests are refused before anything is allocated.
inline constexpr int kMostNodes = 1 << 20;
inline constexpr std::size_t kMostArcs = std::size_t{1} << 24;

/// The request behind a family's name: `torus:2x4` for 8 nodes is {spec, "2x4", 8, seed}.
struct GraphRequest {
  std::string_view spec;
  std::string_view argument;
  /// 0 asks for the count that the argument fixes; only grids, tori and listed edges have one.
  int nodes = 0;
  std::uint64_t seed = 0;
};

/// The graph of every round of one period, self-loops left out, no duplicates.
struct Blueprint {
  std::string name;  ///< the full specification: of the torus that `torus` chose
  int nodes = 0;
  std::vector<std::vector<Arc>> rounds;
  /// Weights of the arcs, where the family has its own; empty otherwise.
  std::vector<std::vector<double>> weights = {};
};

// Each throws Error naming request.spec when the node count or the argument does not do.
Blueprint ring(const GraphRequest& request);
Blueprint complete(const GraphRequest& request);
Blueprint star(const GraphRequest& request);
Blueprint line(const GraphRequest& request);
Blueprint grid(const GraphRequest& request);
Blueprint torus(const GraphRequest& request);
Blueprint hypercube(const GraphRequest& request);
Blueprint exponential(const GraphRequest& request);
Blueprint one_peer_exponential(const GraphRequest& request);
Blueprint base(const GraphRequest& request);
Blueprint matching(const GraphRequest& request);
Blueprint regular(const GraphRequest& request);
Blueprint erdos(const GraphRequest& request);
Blueprint listed_edges(const GraphRequest& request);

/// Rows and columns of a grid or torus, from its specification (`torus:2x4`) or, for a bare name,
/// the most square factorization.
struct GridShape {
  int rows = 1;
  int columns = 1;
};
GridShape grid_shape(const GraphRequest& request);

/// The edges in both directions, sorted, without self-loops and duplicates.
std::vector<Arc> both_ways(std::vector<Arc> edges);

/// Refuses unless 1 ≤ request.nodes ≤ kMostNodes.
void require_nodes(const GraphRequest& request);

/// Refuses a graph of more than kMostArcs directed edges.
void require_arcs(const GraphRequest& request, std::size_t arcs);

[[noreturn]] void refuse_graph(const GraphRequest& request, std::string_view reason);

}  // namespace sotto::internal
