// Counts elements outside a range. A pure function; thread-safe.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include <sotto/kernels/ops.h>

namespace sotto::internal {

/// The number of elements of x that lie outside [low, high]; `range` has x's smallest and largest.
inline std::size_t count_outside(std::span<const float> x, MinMax range, float low, float high) {
  if (range.min >= low && range.max <= high) {
    return 0;
  }
  // In 32 bits and without a branch, so that compilers use the vector unit.
  constexpr std::size_t kMost = std::size_t{1} << 31;
  std::size_t total = 0;
  for (; !x.empty(); x = x.subspan(std::min(x.size(), kMost))) {
    std::uint32_t count = 0;
    for (const float value : x.first(std::min(x.size(), kMost))) {
      count += static_cast<std::uint32_t>(value < low) | static_cast<std::uint32_t>(value > high);
    }
    total += count;
  }
  return total;
}

}  // namespace sotto::internal
