// The median of measurements. A pure function; thread-safe.
#pragma once

#include <algorithm>
#include <vector>

namespace sotto::bench {

/// The value in the middle; of an even number the upper one. Requires at least one value.
inline double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace sotto::bench
