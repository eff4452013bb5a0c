#include <sotto/optim/privacy/gaussian_mechanism.h>

#include <cmath>

#include <sotto/base/check.h>

namespace sotto {
namespace {

constexpr double kSteps = 0x1p28;          // of the grid in the sensitivity
constexpr double kStronger = 1 + 0x1p-10;  // than σ C

double norm_of(std::span<const float> x) {
  double squares = 0;
  for (const float value : x) {
    squares += static_cast<double>(value) * static_cast<double>(value);
  }
  return std::sqrt(squares);
}

}  // namespace

GaussianMechanism::GaussianMechanism(const PrivacyOptions& options, Rank rank)
    : unit_(options.unit),
      clip_norm_(options.clip_norm),
      grid_(options.clip_norm / options.batch / kSteps),
      deviation_(options.noise_multiplier * kStronger * kSteps),
      key_(options.test_seed ? SecretKey::for_tests(*options.test_seed, rank)
                             : SecretKey::fresh()) {}

void GaussianMechanism::release(std::uint64_t step, std::span<const float> gradient,
                                std::span<float> out) const {
  check(gradient.size() == out.size(), "vectors of one length");
  double factor = 1;
  if (unit_ == PrivacyUnit::update) {
    const double norm = norm_of(gradient);
    factor = norm > clip_norm_ ? clip_norm_ / norm : 1;
  }
  SecretStream stream(key_, SecretPurpose::noise, step);
  for (std::size_t k = 0; k < out.size(); ++k) {
    const double value = std::nearbyint(factor * static_cast<double>(gradient[k]) / grid_);
    const double noise = std::nearbyint(deviation_ * stream.normal());
    out[k] = static_cast<float>((value + noise) * grid_);
  }
}

}  // namespace sotto
