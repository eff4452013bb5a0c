#include <algorithm>
#include <array>
#include <cmath>

#include <sotto/base/check.h>

#include "reference_ops.h"

namespace sotto {
namespace {

/// Σ term(i) over i < count, in the shape that kReduceLanes describes.
template <typename Term>
double reduce(std::size_t count, Term term) {
  double total = 0;
  for (std::size_t begin = 0; begin < count; begin += kReduceBlock) {
    const std::size_t end = std::min(count, begin + kReduceBlock);
    std::array<float, kReduceLanes> lanes{};
    for (std::size_t i = begin; i < end; ++i) {
      lanes[i % kReduceLanes] += term(i);
    }
    for (std::size_t half = kReduceLanes / 2; half > 0; half /= 2) {
      for (std::size_t lane = 0; lane < half; ++lane) {
        lanes[lane] += lanes[lane + half];
      }
    }
    total += static_cast<double>(lanes[0]);
  }
  return total;
}

}  // namespace

double ReferenceOps::sum(std::span<const float> x) const {
  return reduce(x.size(), [x](std::size_t i) { return x[i]; });
}

double ReferenceOps::sum_abs(std::span<const float> x) const {
  return reduce(x.size(), [x](std::size_t i) { return std::abs(x[i]); });
}

double ReferenceOps::sum_squares(std::span<const float> x) const {
  return reduce(x.size(), [x](std::size_t i) { return x[i] * x[i]; });
}

double ReferenceOps::dot(std::span<const float> x, std::span<const float> y) const {
  check(x.size() == y.size(), "dot: lengths differ");
  return reduce(x.size(), [x, y](std::size_t i) { return x[i] * y[i]; });
}

MinMax ReferenceOps::min_max(std::span<const float> x) const {
  if (x.empty()) {
    return {};
  }
  const auto [low, high] = std::ranges::minmax(x);
  return {low + 0.0F, high + 0.0F};  // −0 + 0 is +0
}

NonFinite ReferenceOps::count_non_finite(std::span<const float> x) const {
  NonFinite found;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (!std::isfinite(x[i]) && found.count++ == 0) {
      found.first = i;
    }
  }
  return found;
}

}  // namespace sotto
