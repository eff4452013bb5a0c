// The shapes of contract that compressors fill in. Pure functions; thread-safe.
#pragma once

#include <algorithm>
#include <cmath>

#include <sotto/compress/compressor.h>

namespace sotto::internal {

inline Contract exact_contract() {
  return {.unbiased = true, .alpha = 0, .absolute_per_element = 0, .delta = 1};
}

/// Unbiased with E‖C(x) − x‖² ≤ alpha_squared ‖x‖²; a contraction too where that is below 1.
inline Contract unbiased_contract(double alpha_squared) {
  if (alpha_squared <= 0) {
    return exact_contract();
  }
  return {.unbiased = true,
          .alpha = std::sqrt(alpha_squared),
          .delta = std::max(0.0, 1 - alpha_squared)};
}

/// E‖C(x) − x‖² ≤ (1 − delta)‖x‖², 0 ≤ delta ≤ 1.
inline Contract contraction_contract(double delta) {
  if (delta >= 1) {
    return exact_contract();
  }
  return {.unbiased = false, .alpha = std::sqrt(1 - delta), .delta = delta};
}

}  // namespace sotto::internal
