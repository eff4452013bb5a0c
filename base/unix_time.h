// Reads the wall clock. For people and files only: the wall clock may jump. Thread-safe.
#pragma once

#include <chrono>

namespace sotto {

/// Seconds since 1970.
inline double unix_time() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace sotto
