// Whether a peer connects again and again: each meeting costs the site what was under way to the
// peer once more, lines in its logs, and a whole model if the peer asks for one.
//
// A count that grows with each meeting, and goes down evenly. Plain state of one peer; time is the
// caller's. One thread at a time.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include <sotto/comm/deadline.h>

namespace sotto {

class LinkChurn {
 public:
  using Clock = Deadline::Clock;   ///< the caller's
  using Time = Clock::time_point;  ///< a point of it

  /// Meetings in a minute that are nothing out of the ordinary.
  static constexpr double kAMinute = 8;
  /// Meetings that one costs in which the peer was sent a model: one a minute.
  static constexpr double kOfModel = kAMinute;

  /// The two meet.
  void meet(Time now) { set(count(now) + 1, now); }
  /// The peer was sent a model.
  void sent_model(Time now) { set(count(now) + kOfModel - 1, now); }
  /// Whether the two have met more often than is ordinary.
  bool restless(Time now) const { return count(now) > kAMinute; }
  /// Whether it is as if they had never met.
  bool settled(Time now) const { return count(now) == 0; }
  /// How long it takes until that is over; 0: it is.
  Clock::duration lasts(Time now) const {
    const double over = std::max(0.0, count(now) - kAMinute);
    return std::chrono::duration_cast<Clock::duration>(
        std::chrono::duration<double>(over / kAMinute * kMinute));
  }

 private:
  static constexpr double kMinute = 60;  // s

  void set(double meetings, Time now) {
    count_ = meetings;
    since_ = now;
  }
  double count(Time now) const {
    const std::chrono::duration<double> passed = now - since_;
    return std::max(0.0, count_ - kAMinute * passed.count() / kMinute);
  }

  double count_ = 0;
  Time since_{};
};

}  // namespace sotto
