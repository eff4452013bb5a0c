// A vector masked by the zeros of another: parameters whose gradient has always been zero, where
// Adam's v is 0, take no part in steps and exchanges.
// Pure function; thread-safe.
#pragma once

#include <cstddef>
#include <span>

namespace sotto {

/// Zeroes the values where `mask`, of the same length, is 0.
inline void zero_where_zero(std::span<const float> mask, std::span<float> values) {
  for (std::size_t k = 0; k < values.size(); ++k) {
    values[k] = mask[k] == 0 ? 0 : values[k];
  }
}

}  // namespace sotto
