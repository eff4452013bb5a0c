// The congestion window of one TCP connection: how much may leave before acknowledgements come.
//
// Time falls into round trips. In each, no more than a window leaves the sender, at the rate that
// the path gives; what left is acknowledged a round trip later and widens the window by as much, so
// that it doubles (slow start, RFC 5681 §3.1; Linux begins with 10 segments, RFC 6928). It grows up
// to twice what it let out at once (Linux tcp_is_cwnd_limited). Where nothing is lost, the
// window limits nothing any more once it is at least rate × round trip. A connection that has sent
// nothing for longer than the retransmission time-out halves its window for each such span, down to
// the initial one (RFC 2861, Linux tcp_cwnd_restart), unless it is told not to (Linux with
// tcp_slow_start_after_idle = 0, or with BBR). The time-out is 3 round trips at first (RFC 6298),
// and comes nearer to a round trip + 200 ms by a quarter in each round trip (Linux
// tcp_rtt_estimator).
//
// Where packets are lost tcp_sender.h is in its place.
//
// One thread at a time. A plain value.
#pragma once

#include <algorithm>

#include <sotto/sim/network/tcp/round_trip_estimate.h>
#include <sotto/sim/time.h>

namespace sotto {

class CongestionWindow {
 public:
  /// In bytes. Without `decays`, an idle connection keeps its window.
  explicit CongestionWindow(double initial_window = 0, bool decays = true)
      : initial_(initial_window), decays_(decays), window_(initial_) {}

  /// The sender has something to send from `now` on, after a pause of its own or of the window's.
  /// True when a round trip begins with it.
  bool resume(SimTime now, SimTime round_trip);
  /// The sender has `bytes` to send, which leave or queue as far as the window allows.
  void offer(double bytes) { out_ = std::max(out_, std::min(window_, sent_ + bytes)); }
  /// Notes that `bytes` left the sender, the last of them at `now`.
  void sent(double bytes, SimTime now);
  /// The round trip is over while the sender still has `rest` bytes, and sends at `bytes_per_s`.
  void next_round(SimTime now, SimTime round_trip, double bytes_per_s, double rest);

  /// The acknowledgement is late: the round trip lasts until then.
  void hold(SimTime until) { round_end_ = until; }

  /// Bytes that may leave until round_end(); infinite once the window limits nothing.
  double allowance() const;
  SimTime round_end() const { return round_end_; }
  bool open() const { return open_; }
  double window() const { return window_; }

 private:
  /// Acknowledges the round trip's bytes.
  void turn();

  double initial_;
  bool decays_;
  double window_;
  double out_ = 0;   ///< most unacknowledged bytes that were under way or queued
  double sent_ = 0;  ///< bytes sent in the round trip
  /// Variation that the time-out allows a round trip; −1 before the first.
  SimTime variation_ = -1;
  SimTime round_end_ = -1;
  SimTime last_sent_ = -1;  ///< time when a byte left last; −1: none did
  bool open_ = false;
};

/// Seconds that slow start adds to sending `bytes` at `bytes_per_s` where nothing else interferes,
/// from a window of `window` on: Σ (round trip − window / rate) over the windows that are too small
/// and not the last.
double slow_start_s(double bytes, double bytes_per_s, double round_trip_s, double window);

}  // namespace sotto
