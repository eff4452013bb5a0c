// Lost packets: which of a connection's are, how they are sent again, and what rate a long stream
// keeps.
//
// One thread at a time. Plain values.
#pragma once

#include <cstdint>

#include <sotto/base/philox.h>
#include <sotto/sim/network/congestion_window.h>
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

  /// A message of `bytes` bytes begins, in packets of `segment`, the last of them no fuller than it
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

 private:
  void draw();
  void place();

  double chance_;
  RandomStream random_;
  double segment_ = 0;
  double delivered_ = 0;  ///< packets before the next lost one
  double packets_ = 0;    ///< packets of the message that are not yet passed over
  double behind_ = -1;
};

/// A sender at the moment when a packet that is lost leaves it.
struct SenderState {
  SimTime now = 0;
  /// Time after which it hears what the receiver says of a packet that leaves now.
  SimTime hears_after = 0;
  double bytes_per_s = 0;      ///< rate at which it sends
  bool another_waits = false;  ///< a message waits behind the one that flows
};

/// What a lost packet costs its sender.
struct LossCost {
  double bytes_again = 0;  ///< bytes of the message that are sent once more
  /// Time of the last time-out that the packet's repair takes; −1 when it takes none.
  SimTime times_out_at = -1;
};

/// The losses of one connection and their repair: Reno as Linux has it, with selective
/// acknowledgements (RFC 6675), time-based detection (RACK-TLP, RFC 8985) and time-outs, a round
/// trip at a time.
///
/// The window halves as congestion_window.h has it. What was sent behind a lost packet waits for
/// it: messages are delivered in order. The sender hears of the loss a round trip after the packet
/// left, a quarter later where fewer than three packets followed it, and by its time-out where none
/// did: the last packet of a message is what costs most. A packet that is sent again and lost again
/// waits for the time-out, which doubles each time (RFC 6298 §5.5), and the window begins anew.
/// Packets that are sent again are bytes of the message once more. Acknowledgements are not lost:
/// the next one says the same.
class LossRepair {
 public:
  /// Each packet of `segment` bytes is lost with this chance. Requires 0 < chance < 1.
  LossRepair(double chance, const RandomKey& key, double segment)
      : losses_(chance, key), segment_(segment) {}

  /// A message of this many bytes begins: chooses its first lost packet, if any.
  void begin(std::uint64_t bytes) { losses_.begin(static_cast<double>(bytes), segment_); }
  /// Bytes that leave before the next lost packet has, of `remaining` of the message; −1 when none
  /// is lost.
  double until_loss(double remaining) const;
  /// The lost packet has left, and the window knows. A packet is sent once more as bytes of the
  /// message where the message goes on past the window.
  LossCost lose(const SenderState& sender, const CongestionWindow& window);
  /// A packet that is sent at `now`, and heard of after `hears_after`, makes the receiver report a
  /// loss that nothing has shown it yet. Returns by how much sooner it then has everything; 0 if it
  /// does not.
  SimTime report(SimTime now, SimTime hears_after);
  /// The time when a message that is to begin at `now` may begin. While a loss is repaired, bytes
  /// that may leave are counted in acknowledgements (RFC 6937), and none but that of the repair is
  /// to come when the message before has left.
  SimTime may_begin(SimTime now, SimTime round_trip) const;
  /// The time until which the receiver lacks something that was sent: counted as if it left its
  /// sender then. −1: it never lacked anything.
  SimTime whole_at() const { return whole_at_; }
  /// All that is under way is dropped.
  void abort();

 private:
  PacketLosses losses_;
  double segment_;
  SimTime whole_at_ = -1;
  /// The sender has sent nothing since that tells it, and awaits its time-out.
  bool silent_ = false;
};

}  // namespace sotto
