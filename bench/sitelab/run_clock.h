// The clock of a run. Thread-safe.
#pragma once

#include <chrono>

#include <sotto/base/unix_time.h>
#include <sotto/sim/time.h>

namespace sotto::sitelab {

/// A run begins when its clock is made.
class RunClock {
 public:
  SimTime now() const {
    return std::chrono::nanoseconds(std::chrono::steady_clock::now() - start_).count();
  }
  /// When the run began, in seconds since 1970.
  double unix_start() const { return unix_start_; }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  double unix_start_ = unix_time();
};

}  // namespace sotto::sitelab
