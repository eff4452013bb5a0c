// A point in time by which a wait must end. A plain value; thread-safe. Uses the steady clock, so a
// change of the wall clock never expires a wait.
#pragma once

#include <chrono>

namespace sotto {

class Deadline {
 public:
  using Clock = std::chrono::steady_clock;  ///< the clock by which deadlines are kept

  /// Expires a span from now.
  static Deadline after(Clock::duration span) { return Deadline(Clock::now() + span); }
  /// Expires at `at`.
  explicit Deadline(Clock::time_point at) : at_(at) {}

  bool expired() const { return Clock::now() >= at_; }
  /// Time left, never negative.
  Clock::duration left() const {
    const auto now = Clock::now();
    return now >= at_ ? Clock::duration::zero() : at_ - now;
  }
  /// Whole milliseconds left, rounded up, at most `cap`: for poll() and its kin.
  int left_ms(int cap = 1'000'000) const {
    const auto ms = std::chrono::ceil<std::chrono::milliseconds>(left()).count();
    return ms > cap ? cap : static_cast<int>(ms);
  }
  Clock::time_point at() const { return at_; }

 private:
  Clock::time_point at_;
};

}  // namespace sotto
