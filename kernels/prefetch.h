// A hint to the processor: what will be read soon. Thread-safe.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>

namespace sotto {

/// Asks for x[first … first + count) as far as x reaches; for pieces that fit in the cache.
inline void prefetch(std::span<const float> x, std::size_t first, std::size_t count) {
  constexpr std::size_t kLine = 64 / sizeof(float);
  const std::size_t end = std::min(x.size(), first + count);
  for (std::size_t i = first; i < end; i += kLine) {
    __builtin_prefetch(&x[i]);
  }
}

}  // namespace sotto
