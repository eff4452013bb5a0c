#include "circulant.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <numbers>
#include <vector>

namespace sotto::internal {
namespace {

/// Everyone hears the node `hop` places before itself with this weight.
struct Hop {
  std::int64_t hop = 0;
  float weight = 0;

  friend bool operator==(const Hop&, const Hop&) = default;
};

std::vector<Hop> hops_of(const Topology& topology, Rank node, Round round) {
  std::vector<Hop> hops;
  for (const Edge& edge : topology.in_edges(node, round)) {
    hops.push_back({(node - edge.peer + topology.nodes()) % topology.nodes(), edge.weight});
  }
  std::sort(hops.begin(), hops.end(), [](const Hop& a, const Hop& b) { return a.hop < b.hop; });
  return hops;
}

/// The hops of every node in `round`; nothing when nodes differ.
std::optional<std::vector<Hop>> common_hops(const Topology& topology, Round round) {
  std::vector<Hop> hops = hops_of(topology, 0, round);
  for (Rank node = 1; node < topology.nodes(); ++node) {
    if (hops_of(topology, node, round) != hops) {
      return std::nullopt;
    }
  }
  return hops;
}

/// 1 − λ of Fourier mode k: Σ w (1 − e^(−iθ)) with θ = 2π k hop / n, exact for small angles.
std::complex<double> distance_from_one(const std::vector<Hop>& hops, std::int64_t k,
                                       std::int64_t n) {
  std::complex<double> sum = 0;
  for (const Hop& hop : hops) {
    const double half =
        std::numbers::pi * static_cast<double>(k * hop.hop % n) / static_cast<double>(n);
    const double sine = std::sin(half);
    sum += static_cast<double>(hop.weight) *
           std::complex<double>(2 * sine * sine, 2 * sine * std::cos(half));
  }
  return sum;
}

}  // namespace

std::optional<CirculantFigures> circulant_figures(const Topology& topology) {
  std::vector<std::vector<Hop>> rounds;
  for (Round round = 0; round < topology.period(); ++round) {
    auto hops = common_hops(topology, round);
    if (!hops) {
      return std::nullopt;
    }
    rounds.push_back(std::move(*hops));
  }
  CirculantFigures figures;
  const std::int64_t n = topology.nodes();
  // Modes k and n − k are conjugates.
  for (std::int64_t k = 1; k <= n / 2; ++k) {
    std::complex<double> away = 0;  // 1 − the product of the rounds' λ
    for (const auto& hops : rounds) {
      const std::complex<double> step = distance_from_one(hops, k, n);
      away += step - away * step;
    }
    const double gap = (2 * away.real() - std::norm(away)) / (1 + std::abs(1.0 - away));
    figures.gap = std::min(figures.gap, gap);
    figures.mu = std::max(figures.mu, std::abs(away));
    figures.real_span = std::max(figures.real_span, away.real());
  }
  return figures;
}

}  // namespace sotto::internal
