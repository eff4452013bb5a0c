// A number by which a node's start is told from all others. Thread-safe.
#pragma once

#include <cstdint>

#include <sotto/base/ids.h>

namespace sotto::internal {

/// Unlike that of any other start, and not 0.
std::uint64_t draw_start_number(Rank rank);

}  // namespace sotto::internal
