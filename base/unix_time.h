// Reads the wall clock. For people and files only: the wall clock may jump. Thread-safe.
#pragma once

#include <chrono>
#include <cstdint>

namespace sotto {

/// Seconds since 1970.
inline double unix_time() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

/// Whole seconds since 1970.
inline std::int64_t unix_seconds() {
  return std::chrono::duration_cast<std::chrono::seconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace sotto
