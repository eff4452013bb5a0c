// The terms of secure sums (secure_sum.h), which all sites share (docs/sites.md).
#pragma once

#include <cstddef>

namespace sotto::sites {

/// The most sites of a sum.
inline constexpr std::size_t kMostSummed = 64;

struct SecureSumRule {
  /// c: sites that may tell each other, and the receiver, all they see. 0 … sites − 3.
  std::size_t colluders = 1;
  /// The largest value of an element; what is beyond is cut to it.
  double range = 16;
};

}  // namespace sotto::sites
