// Seconds by the clock that never goes back. Thread-safe.
#pragma once

#include <chrono>

namespace sotto {

/// A length of time in seconds.
inline double seconds_of(std::chrono::steady_clock::duration length) {
  return std::chrono::duration<double>(length).count();
}

/// Seconds from `start` to now.
inline double seconds_since(std::chrono::steady_clock::time_point start) {
  return seconds_of(std::chrono::steady_clock::now() - start);
}

}  // namespace sotto
