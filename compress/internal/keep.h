// How many elements a sparse compressor keeps. Pure functions; thread-safe.
#pragma once

#include <cstddef>

namespace sotto::internal {

/// ⌈keep_ratio × elements⌉ in double precision, within 1 … elements; 0 for no elements.
std::size_t kept_elements(double keep_ratio, std::size_t elements);

/// Throws Error unless 0 < keep_ratio ≤ 1.
void check_keep_ratio(double keep_ratio);

}  // namespace sotto::internal
