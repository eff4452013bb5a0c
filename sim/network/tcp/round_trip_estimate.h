// What a TCP sender knows of its round trip, and how long it waits for an acknowledgement (RFC
// 6298, with Linux's bounds).
//
// One thread at a time. A plain value.
#pragma once

#include <algorithm>
#include <cstdlib>

#include <sotto/sim/time.h>

namespace sotto {

/// A connection's retransmission time-out where the round trip hardly varies: Linux adds this to it
/// (TCP_RTO_MIN).
inline constexpr SimTime kTimeoutMargin = 200'000'000;
/// No time-out is longer (TCP_RTO_MAX).
inline constexpr SimTime kLongestTimeout = 120'000'000'000;

class RoundTripEstimate {
 public:
  /// The first round trip took so long: that of the handshake.
  explicit RoundTripEstimate(SimTime first)
      : smoothed_(first),
        deviation_(2 * first),
        margin_(std::max(2 * first, kTimeoutMargin)),
        least_(first) {}

  /// A packet was heard of so long after it left, by an acknowledgement of all up to it.
  /// `new_round`: it left after the last such round trip.
  void add(SimTime round_trip, bool new_round) {
    const SimTime error = round_trip - smoothed_;
    smoothed_ += error / 8;
    // A shorter round trip tells little of how long a longer one may be.
    const SimTime more = std::abs(error) - deviation_ / 4;
    deviation_ += error < 0 && more > 0 ? more / 8 : more;
    most_ = std::max(most_, deviation_);
    margin_ = std::max({margin_, most_, kTimeoutMargin});
    if (new_round) {
      margin_ -= std::max<SimTime>(margin_ - std::max(most_, kTimeoutMargin), 0) / 4;
      most_ = 0;
    }
  }
  /// A packet was heard of so long after it left.
  void note_least(SimTime round_trip) { least_ = std::min(least_, round_trip); }

  SimTime smoothed() const { return smoothed_; }
  SimTime least() const { return least_; }
  /// The time-out after `failures` time-outs in a row: it doubles with each.
  SimTime timeout(int failures) const {
    constexpr int kMostDoublings = 20;
    const int doublings = std::min(failures, kMostDoublings);
    const SimTime first = plus(smoothed_, margin_);
    return first > kLongestTimeout >> doublings ? kLongestTimeout : first << doublings;
  }

 private:
  SimTime smoothed_;
  SimTime deviation_;  ///< four times the mean deviation
  SimTime most_ = 0;   ///< largest deviation of this round trip
  SimTime margin_;
  SimTime least_;
};

}  // namespace sotto
