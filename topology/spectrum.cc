#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>
#include <vector>

#include <sotto/topology/properties.h>
#include <sotto/topology/spectrum.h>

#include "internal/circulant.h"
#include "internal/eigenvalues.h"

namespace sotto {
namespace {

using internal::Ends;
using internal::ExtremeEigenvalues;

double mean(std::span<const double> x) {
  return std::accumulate(x.begin(), x.end(), 0.0) / static_cast<double>(x.size());
}

void add_to_all(double value, std::span<double> x) {
  for (double& element : x) {
    element += value;
  }
}

/// y ← W x of one round, or Wᵀ x when `edges` lists the nodes that hear a node.
void mix(const Topology& topology, Round round,
         std::span<const Edge> (Topology::*edges)(Rank, Round) const, std::span<const double> x,
         std::span<double> y) {
  for (Rank node = 0; node < topology.nodes(); ++node) {
    const auto i = static_cast<std::size_t>(node);
    double sum = static_cast<double>(topology.self_weight(node, round)) * x[i];
    for (const Edge& edge : (topology.*edges)(node, round)) {
      sum += static_cast<double>(edge.weight) * x[static_cast<std::size_t>(edge.peer)];
    }
    y[i] = sum;
  }
}

/// The mixing of one whole period, W_{τ−1} … W_0.
class PeriodProduct {
 public:
  explicit PeriodProduct(const Topology& topology)
      : topology_(topology), scratch_(static_cast<std::size_t>(topology.nodes())) {}

  void apply(std::span<double> x) {
    for (Round round = 0; round < topology_.period(); ++round) {
      mix(topology_, round, &Topology::in_edges, x, scratch_);
      std::copy(scratch_.begin(), scratch_.end(), x.begin());
    }
  }
  void apply_transposed(std::span<double> x) {
    for (Round round = topology_.period(); round-- > 0;) {
      mix(topology_, round, &Topology::out_edges, x, scratch_);
      std::copy(scratch_.begin(), scratch_.end(), x.begin());
    }
  }

 private:
  const Topology& topology_;
  std::vector<double> scratch_;
};

/// y ← (I − W) x + shift × 11ᵀ/n x. The differences keep the small eigenvalues of I − W accurate.
void laplacian(const Topology& topology, double shift, std::span<const double> x,
               std::span<double> y) {
  for (Rank node = 0; node < topology.nodes(); ++node) {
    const auto i = static_cast<std::size_t>(node);
    double sum = 0;
    for (const Edge& edge : topology.in_edges(node, 0)) {
      sum += static_cast<double>(edge.weight) * (x[i] - x[static_cast<std::size_t>(edge.peer)]);
    }
    y[i] = sum;
  }
  add_to_all(shift * mean(x), y);
}

/// The eigenvalues of I − W on the complement of 1; its own eigenvalue, 0, is moved to their mean.
ExtremeEigenvalues laplacian_extremes(const Topology& topology) {
  const auto n = static_cast<std::size_t>(topology.nodes());
  double trace = 0;
  for (Rank node = 0; node < topology.nodes(); ++node) {
    trace += 1 - static_cast<double>(topology.self_weight(node, 0));
  }
  const double shift = trace / static_cast<double>(n - 1);
  return extreme_eigenvalues(
      n, [&](auto x, auto y) { laplacian(topology, shift, x, y); }, Ends::both);
}

/// Smallest eigenvalue of I − MᵀM with M = W − 11ᵀ/n, which is 1 − ‖M‖².
double squared_gap(const Topology& topology) {
  const auto n = static_cast<std::size_t>(topology.nodes());
  PeriodProduct product(topology);
  const auto map = [&](std::span<const double> x, std::span<double> y) {
    std::copy(x.begin(), x.end(), y.begin());
    product.apply(y);
    add_to_all(-mean(x), y);
    const double middle = mean(y);
    product.apply_transposed(y);
    add_to_all(-middle, y);
    std::transform(x.begin(), x.end(), y.begin(), y.begin(), std::minus<>());
  };
  return extreme_eigenvalues(n, map, Ends::smallest).smallest;
}

/// ‖I − W‖² on the complement of 1.
double squared_mu(const Topology& topology) {
  const auto n = static_cast<std::size_t>(topology.nodes());
  PeriodProduct product(topology);
  std::vector<double> centered(n);
  const auto map = [&](std::span<const double> x, std::span<double> y) {
    std::copy(x.begin(), x.end(), centered.begin());
    add_to_all(-mean(x), centered);
    std::copy(centered.begin(), centered.end(), y.begin());
    product.apply(y);
    std::transform(centered.begin(), centered.end(), y.begin(), centered.begin(), std::minus<>());
    std::copy(centered.begin(), centered.end(), y.begin());
    product.apply_transposed(y);
    std::transform(centered.begin(), centered.end(), y.begin(), y.begin(), std::minus<>());
    add_to_all(-mean(y), y);
  };
  return extreme_eigenvalues(n, map, Ends::largest).largest;
}

}  // namespace

Spectrum spectrum(const Topology& topology) {
  Spectrum figures;
  figures.spectral_gap = 1;
  figures.dcd_alpha_limit = std::numeric_limits<double>::infinity();
  if (topology.nodes() == 1) {
    return figures;
  }
  const GraphProperties graph = properties(topology);
  const bool symmetric = !topology.time_varying() && graph.symmetric && graph.row_stochastic;
  const auto circulant =
      graph.row_stochastic ? internal::circulant_figures(topology) : std::nullopt;
  if (circulant) {
    figures.spectral_gap = circulant->gap;
    figures.mu = circulant->mu;
    figures.lambda_min = symmetric ? 1 - circulant->real_span : 1;
  } else if (symmetric) {
    const ExtremeEigenvalues away = laplacian_extremes(topology);
    figures.spectral_gap = std::min(away.smallest, 2 - away.largest);
    figures.mu = away.largest;
    figures.lambda_min = 1 - away.largest;
  } else {
    const double gap = squared_gap(topology);
    figures.spectral_gap = gap / (1 + std::sqrt(std::max(0.0, 1 - gap)));
    figures.mu = std::sqrt(std::max(0.0, squared_mu(topology)));
  }
  if (symmetric) {
    figures.spectral_gap = graph.connected ? std::max(0.0, figures.spectral_gap) : 0.0;
  }
  figures.rho = 1 - figures.spectral_gap;
  if (figures.mu > 0) {
    figures.dcd_alpha_limit = std::max(0.0, figures.spectral_gap) / (2 * figures.mu);
  }
  return figures;
}

}  // namespace sotto
