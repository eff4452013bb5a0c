#include <sotto/optim/privacy/clipped_sum.h>

#include <algorithm>
#include <cmath>

#include <sotto/base/check.h>

namespace sotto {

ClippedSum::ClippedSum(std::size_t dimension, double clip_norm)
    : clip_norm_(clip_norm), sum_(dimension) {
  check(clip_norm > 0, "a positive clip norm");
}

void ClippedSum::clear() { std::fill(sum_.begin(), sum_.end(), 0.0); }

void ClippedSum::add(std::span<const float> gradient) {
  check(gradient.size() == sum_.size(), "a gradient of the sum's dimension");
  double squares = 0;
  for (const float g : gradient) {
    squares += static_cast<double>(g) * static_cast<double>(g);
  }
  const double norm = std::sqrt(squares);
  const double factor = norm > clip_norm_ ? clip_norm_ / norm : 1;
  for (std::size_t k = 0; k < sum_.size(); ++k) {
    sum_[k] += factor * static_cast<double>(gradient[k]);
  }
}

void ClippedSum::divide(double batch, std::span<float> out) const {
  check(out.size() == sum_.size(), "a gradient of the sum's dimension");
  for (std::size_t k = 0; k < out.size(); ++k) {
    out[k] = static_cast<float>(sum_[k] / batch);
  }
}

}  // namespace sotto
