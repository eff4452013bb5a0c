// How much privacy a number of steps costs: Rényi differential privacy of the sampled Gaussian
// mechanism (gaussian_rdp.h), composed by addition and converted to (ε, δ).
//
//   PrivacyAccountant spent;
//   spent.add({.noise_multiplier = 1.5, .sampling_rate = 0.04}, 2250);
//   spent.epsilon(1e-5);  // 7.329
//
// Orders: 1.1, 1.2 … 10.9, 12 … 63 (as Opacus), 128, 256, 512, 1024. Every order gives a valid ε;
// the smallest is told. Composition holds for mechanisms chosen in the light of earlier results.
// Thread safety: values and pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace sotto {

/// One step of DP-SGD.
struct GaussianStep {
  double noise_multiplier = 0;  ///< σ: the noise's deviation over the sensitivity; ≥ 0
  double sampling_rate = 1;     ///< q of the Poisson sample; 0 … 1
};

/// Adds up the privacy that steps cost.
class PrivacyAccountant {
 public:
  PrivacyAccountant();

  /// Adds `steps` steps of one kind.
  void add(const GaussianStep& step, std::uint64_t steps);

  /// The least ε for this δ by the improved conversion (Balle et al. 2020, arXiv:1905.09982,
  /// Theorem 21; Canonne, Kamath and Steinke 2020, arXiv:2004.00010, Proposition 12):
  ///   ε = ε_α + log((α − 1) / α) − (log δ + log α) / (α − 1).
  /// Infinite when some step had no noise. Requires 0 < δ < 1.
  double epsilon(double delta) const;
  /// ε by the conversion of Mironov 2017, arXiv:1702.07476: ε = ε_α − log δ / (α − 1). Never
  /// smaller; to compare with figures of the past.
  double classic_epsilon(double delta) const;

 private:
  std::vector<double> rdp_;  // Rényi divergence by order
};

/// Most steps with epsilon(delta) ≤ epsilon, when each of `before` was taken once already;
/// kUnlimitedSteps when there is no end.
std::uint64_t steps_within(const GaussianStep& step, double epsilon, double delta,
                           std::span<const GaussianStep> before = {});
/// The value that stands for no limit.
inline constexpr std::uint64_t kUnlimitedSteps = std::uint64_t{1} << 62;

/// The least noise multiplier, up to a relative 1e-6 too large, with which `steps` steps and each
/// of `before` cost at most ε at δ. Throws Error (field `privacy_epsilon`) when no noise below 10^6
/// does.
double noise_multiplier_for(double epsilon, double delta, double sampling_rate, std::uint64_t steps,
                            std::span<const GaussianStep> before = {});

}  // namespace sotto
