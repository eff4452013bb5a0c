// Parameters that take no part: those whose gradient has always been zero, where Adam's v is 0.
// Pure function; thread-safe.
#pragma once

#include <cstddef>
#include <span>

namespace sotto {

/// Zeroes the values where `live`, of the same length, is 0.
inline void mute(std::span<const float> live, std::span<float> values) {
  for (std::size_t k = 0; k < values.size(); ++k) {
    values[k] = live[k] == 0 ? 0 : values[k];
  }
}

}  // namespace sotto
