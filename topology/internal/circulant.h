// Graphs that look the same from every node: W_ij depends on (i − j) mod n only. Rings, exponential
// graphs and complete graphs are such; the discrete Fourier transform diagonalizes them. Pure
// functions; thread-safe.
#pragma once

#include <optional>

#include <sotto/topology/topology.h>

namespace sotto::internal {

/// Figures of the mixing of one period, on the complement of 1.
struct CirculantFigures {
  double gap = 1;        ///< 1 − max |λ|
  double mu = 0;         ///< max |1 − λ|
  double real_span = 0;  ///< max Re(1 − λ)
};

/// Nothing when some round is no circulant. Requires rows that sum to 1 and at least two nodes.
std::optional<CirculantFigures> circulant_figures(const Topology& topology);

}  // namespace sotto::internal
