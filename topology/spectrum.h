// How fast a graph mixes: the spectrum of its mixing matrix. Pure functions; thread-safe.
#pragma once

#include <sotto/topology/topology.h>

namespace sotto {

/// Spectral figures of W; for a time-varying graph those of the product over one period.
/// Symmetric W: from the eigenvalues 1 = λ_1 ≥ … ≥ λ_n. Otherwise ρ = ‖W − 11ᵀ/n‖₂ and
/// μ = ‖I − W‖₂ on the complement of 1, which agree with the eigenvalues for a normal W.
struct Spectrum {
  double rho = 0;           ///< max(|λ_2|, |λ_n|)
  double spectral_gap = 0;  ///< 1 − ρ
  double mu = 0;            ///< max_{k≥2} |1 − λ_k|
  double lambda_min = 1;    ///< λ_n, symmetric W only
  /// Largest α that DCD-PSGD's theory allows: (1 − ρ)² − 4 μ² α² > 0, so (1 − ρ) / (2 μ).
  /// Infinite when μ is 0 (a single node).
  double dcd_alpha_limit = 0;
};

/// Graphs that look the same from every node (rings, exponential graphs) in closed form; others
/// dense up to 256 nodes and by Lanczos beyond; ρ and μ to about 1e-9. An expander of 10,000 nodes
/// takes milliseconds; a line, with its tiny gap, about n products with W: a second. Throws Error
/// where that would take minutes (a line of some 60,000 nodes).
Spectrum spectrum(const Topology& topology);

}  // namespace sotto
