// Counts elements outside a range. A pure function; thread-safe.
#pragma once

#include <cstddef>
#include <span>

#include <sotto/kernels/ops.h>

namespace sotto::internal {

/// How many elements of x, whose smallest and largest are `range`, lie outside [low, high].
inline std::size_t count_outside(std::span<const float> x, MinMax range, float low, float high) {
  std::size_t count = 0;
  if (range.min < low || range.max > high) {
    for (const float value : x) {
      count += static_cast<std::size_t>(value < low || value > high);
    }
  }
  return count;
}

}  // namespace sotto::internal
