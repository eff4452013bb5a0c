// A clock that can stand still. Not thread-safe.
#pragma once

#include <chrono>

#include <sotto/base/elapsed.h>

namespace sotto::internal {

class Stopwatch {
 public:
  /// Seconds while it ran, on top of `before`.
  double seconds() const { return running_ ? before_ + seconds_since(start_) : before_; }
  void set(double before) { before_ = before; }
  void go() {
    start_ = Clock::now();
    running_ = true;
  }
  void pause() {
    before_ = seconds();
    running_ = false;
  }

 private:
  using Clock = std::chrono::steady_clock;

  Clock::time_point start_;
  double before_ = 0;
  bool running_ = false;
};

}  // namespace sotto::internal
