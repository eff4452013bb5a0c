// The time that a model may take from one site to another before the sender, or the one that is
// sent it, counts as one that does not do its part.
#pragma once

#include <cstddef>

namespace sotto {

/// Seconds in which so many bytes arrive over the slowest link that sites are made for, 16 KB/s.
inline double longest_transfer_s(std::size_t bytes) {
  constexpr double kSlowestBytesPerS = 16e3;
  return static_cast<double>(bytes) / kSlowestBytesPerS;
}

}  // namespace sotto
