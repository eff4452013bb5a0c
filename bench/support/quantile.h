// Where measurements lie: quantiles, and the median. Pure functions; thread-safe.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>
#include <vector>

namespace sotto::bench {

/// The value below which a share of `fraction` lies, between neighbours in proportion; NaN for no
/// values.
inline double quantile(std::span<const double> values, double fraction) {
  if (values.empty()) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  std::vector<double> sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end());
  const double at = fraction * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(std::floor(at));
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (at - std::floor(at)) * (sorted[above] - sorted[below]);
}

/// The value in the middle; of an even number the mean of the two there. NaN for no values.
inline double median(std::span<const double> values) { return quantile(values, 0.5); }

}  // namespace sotto::bench
