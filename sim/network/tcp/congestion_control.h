// What a TCP sender makes of acknowledgements and losses: how much may be under way, and how fast
// it leaves. The choices are those that Linux has.
//
// One thread at a time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>

#include <sotto/sim/time.h>

namespace sotto {

/// Which congestion control senders have. Linux names them as here.
enum class Congestion : std::uint8_t {
  reno,   ///< RFC 5681
  cubic,  ///< RFC 9438, with HyStart
  bbr,    ///< version 1
};

/// "reno", "cubic" or "bbr".
std::string congestion_name(Congestion congestion);
/// Throws Error for another name.
Congestion parse_congestion(const std::string& name);

/// What congestion control moves.
struct CongestionState {
  static constexpr int kNoThreshold = std::numeric_limits<int>::max() / 4;
  int window = 10;               ///< packets that may be under way
  int threshold = kNoThreshold;  ///< packets up to which the window doubles in a round trip

  /// Below the threshold the window grows by each of the `delivered` packets (RFC 5681, 3.1).
  /// Returns those that are left for growth beyond it.
  int slow_start(int delivered) {
    const int grown = window < threshold ? std::min(window + delivered, threshold) - window : 0;
    window += grown;
    return delivered - grown;
  }
};

/// Whether a sender repairs losses.
enum class Repair : std::uint8_t {
  none,
  recovery,  ///< after acknowledgements that told of a loss (RFC 6675)
  timeout,   ///< after a time-out (RFC 6298)
};

/// What an acknowledgement told.
struct Told {
  SimTime now = 0;
  SimTime round_trip = -1;  ///< of the packet that left last; −1: not known
  int delivered = 0;        ///< packets that the receiver is now known to have
  int acknowledged = 0;     ///< packets up to the first that is missing, of these and earlier ones
  int lost = 0;             ///< packets that are now known to be lost
  int in_flight = 0;        ///< packets under way, afterwards
  bool limited = false;     ///< the window held the sender up
  Repair repair = Repair::none;
  /// Packets/s at which the receiver got them lately; 0: not known.
  double packets_per_s = 0;
  bool idle = false;                ///< the sender had too little to send for that to be the path's
  std::uint64_t delivered_all = 0;  ///< packets that the receiver has, since the beginning
  std::uint64_t delivered_then = 0;  ///< as many as it had when the packet told of left
  SimTime least_round_trip = 0;      ///< of all so far
};

class CongestionControl {
 public:
  CongestionControl() = default;
  virtual ~CongestionControl() = default;
  CongestionControl(const CongestionControl&) = delete;
  CongestionControl& operator=(const CongestionControl&) = delete;

  /// The window that a loss leaves. Called when a repair begins.
  virtual int after_loss(const CongestionState& state) = 0;
  /// An acknowledgement came: moves the window. While Reno and CUBIC repair what acknowledgements
  /// told of, the sender moves it (RFC 6937).
  virtual void hear(CongestionState& state, const Told& told) = 0;
  /// Whether it moves the window during repairs, too.
  virtual bool rules_repairs() const { return false; }
  /// The sender's time-out has passed.
  virtual void time_out() {}
  /// The sender had nothing under way for so long.
  virtual void rest(SimTime /*span*/) {}
  /// The rate at which packets may leave; infinite: as soon as the window lets them.
  virtual double packets_per_s() const { return std::numeric_limits<double>::infinity(); }
};

/// For a connection whose first round trip took this long, and whose window begins with so many
/// packets.
std::unique_ptr<CongestionControl> make_congestion_control(Congestion congestion,
                                                           SimTime round_trip, int window);

}  // namespace sotto
