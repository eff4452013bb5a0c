// The congestion window of one TCP connection while it is smaller than what the path would take.
//
// Time falls into round trips. In each, no more than a window leaves the sender, at the rate that
// the path gives; what left is acknowledged a round trip later and widens the window by as much, so
// that it doubles (slow start, RFC 5681 §3.1; Linux begins with 10 segments, RFC 6928). A window
// that is less than half used does not grow (Linux tcp_is_cwnd_limited). Once the window is at
// least rate × round trip it limits nothing any more; what congestion avoidance and losses make of
// it afterwards is not modelled. A connection that has sent nothing for longer than the
// retransmission time-out, round trip + 200 ms in Linux, halves its window for each such span, down
// to the initial one (RFC 2861, Linux tcp_cwnd_restart), unless it is told not to (Linux with
// tcp_slow_start_after_idle = 0, or with BBR).
//
// One thread at a time. A plain value.
#pragma once

#include <cstdint>
#include <limits>

#include <sotto/sim/time.h>

namespace sotto {

class SlowStart {
 public:
  explicit SlowStart(double initial_window = 0, bool decays = true)
      : initial_(initial_window), decays_(decays), window_(initial_) {}

  /// The sender has something to send from `now` on, after a pause of its own or of the window's.
  /// True when a round trip begins with it.
  bool resume(SimTime now, SimTime round_trip);
  /// So much left the sender, the last of it at `now`.
  void sent(double bytes, SimTime now);
  /// The round trip is over while the sender still sends, at `bytes_per_s`.
  void next_round(SimTime now, SimTime round_trip, double bytes_per_s);

  /// The acknowledgement is late: the round trip lasts until then.
  void hold(SimTime until) { round_end_ = until; }

  /// Bytes that may leave until round_end(); infinite once the window limits nothing.
  double allowance() const;
  SimTime round_end() const { return round_end_; }
  bool open() const { return open_; }
  double window() const { return window_; }

 private:
  void grow();

  double initial_;
  bool decays_;
  double window_;
  double sent_ = 0;  ///< of the round trip
  SimTime round_end_ = -1;
  SimTime last_sent_ = -1;  ///< before anything was: −1
  bool open_ = false;
};

/// Seconds that slow start adds to sending `bytes` at `bytes_per_s` where nothing else interferes,
/// from a window of `window` on: Σ (round trip − window / rate) over the windows that are too small
/// and not the last.
double slow_start_s(double bytes, double bytes_per_s, double round_trip_s, double window);

}  // namespace sotto
