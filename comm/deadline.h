// The end of a wait: a point in time, or earlier if a stop is requested.
//
// Uses the steady clock, so a change of the wall clock never expires a wait. A plain value;
// thread-safe. The stop request must outlive the deadline.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string_view>
#include <thread>

#include <sotto/base/status.h>

namespace sotto {

/// Whether waits are to end before their time: a caller's flag, set by Ctrl-C or by another thread.
/// Every wait asks it some twenty times a second, on whichever thread it waits, and ends with
/// Fault::stopped once the answer is true; which it must stay. Must be thread-safe, take no time
/// and throw nothing. Empty: no stop is ever requested.
using StopRequest = std::function<bool()>;
/// The message of Fault::stopped where a stop was requested between two waits.
inline constexpr std::string_view kStopped = "stopped";

/// How much longer a node takes once its stop is requested, to leave in good order: only what is
/// there by then is served. Each step has time for the one before it.
namespace after_stop {
/// Hands frames that were sent over to neighbours that take them.
inline constexpr std::chrono::milliseconds kClose{250};
/// Tells a store that answers why the node leaves, on a slow link too.
inline constexpr std::chrono::milliseconds kStore{400};
}  // namespace after_stop

class Deadline {
 public:
  using Clock = std::chrono::steady_clock;  ///< the clock by which deadlines are kept

  /// Expires a span from now, or earlier once `*stop` returns true; `stop` may be null.
  static Deadline after(Clock::duration span, const StopRequest* stop = nullptr) {
    return Deadline(Clock::now() + span, stop);
  }
  /// Expires at `at`, or once `stop` answers true.
  explicit Deadline(Clock::time_point at, const StopRequest* stop = nullptr)
      : at_(at), stop_(stop != nullptr && *stop ? stop : nullptr) {}

  bool expired() const { return Clock::now() >= at_ || stopped(); }
  /// Whether a stop was requested, in time or not.
  bool stopped() const { return stop_ != nullptr && (*stop_)(); }
  /// The fault of a wait that this has ended.
  Fault fault() const { return stopped() ? Fault::stopped : Fault::deadline; }

  /// Time left, never negative; a stop may come earlier.
  Clock::duration left() const {
    const auto now = Clock::now();
    return now >= at_ ? Clock::duration::zero() : at_ - now;
  }
  /// Whole milliseconds left, rounded up, at most `cap`.
  int left_ms(int cap = 1'000'000) const { return ms_until(at_, cap); }
  Clock::time_point at() const { return at_; }

  /// The time at which a wait must check again whether the deadline has expired.
  Clock::time_point next_look() const {
    return stop_ == nullptr ? at_ : std::min(at_, Clock::now() + kLook);
  }
  /// next_look() in whole milliseconds from now, for calls such as poll().
  int look_ms() const { return ms_until(next_look(), 1'000'000); }

  /// This one, or `at` if that is earlier.
  Deadline or_at(Clock::time_point at) const { return Deadline(std::min(at_, at), stop_); }
  /// This one, or a span from now if that is earlier.
  Deadline or_after(Clock::duration span) const { return or_at(Clock::now() + span); }
  /// The stop request that the deadline asks; null if it has none.
  const StopRequest* stop() const { return stop_; }

 private:
  /// Well below what a person takes for a program that does not listen.
  static constexpr std::chrono::milliseconds kLook{50};

  static int ms_until(Clock::time_point at, int cap) {
    const auto left = std::max(at - Clock::now(), Clock::duration::zero());
    const auto ms = std::chrono::ceil<std::chrono::milliseconds>(left).count();
    return ms > cap ? cap : static_cast<int>(ms);
  }

  Clock::time_point at_;
  const StopRequest* stop_;
};

/// Waits until `ready`, which is called under the lock, or the deadline; whether it is ready. The
/// stop request is asked without the lock.
template <typename Ready>
bool wait_until(std::condition_variable& changed, std::unique_lock<std::mutex>& lock,
                const Deadline& deadline, const Ready& ready) {
  while (!ready()) {
    bool over = Deadline::Clock::now() >= deadline.at();
    if (!over && deadline.stop() != nullptr) {
      lock.unlock();
      over = deadline.stopped();
      lock.lock();
      if (ready()) {
        return true;
      }
    }
    if (over) {
      return false;
    }
    changed.wait_until(lock, deadline.next_look());
  }
  return true;
}

/// Sleeps until the deadline, or until a stop is requested.
inline void sleep_until(const Deadline& deadline) {
  while (!deadline.expired()) {
    std::this_thread::sleep_until(deadline.next_look());
  }
}

}  // namespace sotto
