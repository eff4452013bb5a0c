// Lost packets: which of a connection's are, and what rate a long stream keeps.
//
// One thread at a time. Plain values.
#pragma once

#include <cstdint>

#include <sotto/base/philox.h>
#include <sotto/sim/time.h>

namespace sotto {

/// Bytes/s that TCP keeps in a long stream of segments of which the fraction `loss` is lost, each
/// apart from the others, where nothing else bounds it (Padhye, Firoiu, Towsley and Kurose,
/// "Modeling TCP throughput", SIGCOMM 1998, eq. 30, every segment acknowledged, time-outs of a
/// round trip + 200 ms). Requires 0 < loss < 1 and round_trip_s > 0.
double mean_rate(double loss, double round_trip_s, double segment_bytes);

/// The packets of one connection that are lost: every one with the same chance.
class PacketLosses {
 public:
  /// Requires 0 < chance < 1.
  PacketLosses(double chance, const RandomKey& key);

  /// A message begins, of so many bytes in packets of `segment`, the last of them no fuller than it
  /// need be.
  void begin(double bytes, double segment);
  /// Bytes of the message behind its next lost packet; −1 when it loses none.
  double behind() const { return behind_; }
  /// The lost packet has left: names the next.
  void next();
  /// `bytes` more are sent before the next lost packet: others once more.
  void delay(double bytes) { behind_ = behind_ < 0 ? behind_ : behind_ + bytes; }
  /// Whether a packet that is sent again is lost again.
  bool again() { return random_.uniform() < chance_; }

  /// Until then the receiver lacks something that was sent: counted as if it left its sender then.
  /// −1: it never lacked anything.
  SimTime whole_at = -1;
  /// Nothing that was sent since tells the sender: it waits for its time-out.
  bool silent = false;

 private:
  void draw();
  void place();

  double chance_;
  RandomStream random_;
  double segment_ = 0;
  double delivered_ = 0;  ///< packets before the next lost one
  double packets_ = 0;    ///< of the message, not yet passed over
  double behind_ = -1;
};

}  // namespace sotto
