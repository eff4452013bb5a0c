// The sender of one TCP connection whose packets may be lost, packet by packet: what leaves when,
// which packets count as lost, and how they are sent again. It does what Linux does by default:
//
// - Losses are found by time (RACK, RFC 8985): a packet is lost when one that left later by a
//   quarter of a round trip has arrived, or by any span once three have or a repair has begun. That
//   holds for packets that were sent again, too.
// - While it repairs, the window comes down in proportion to what arrives (PRR, RFC 6937).
// - Where nothing is heard the last packet is sent again, once, after two round trips (TLP, RFC
//   8985 §7), and after a time-out all that is missing, beginning with a window of one packet. The
//   time-out doubles each time (RFC 6298 §5.5), up to two minutes.
// - Where all packets sent again turn out to have arrived twice, the window is given back (RFC
//   3708).
// - A sender that was idle for longer than its time-out halves its window for each (RFC 2861).
//
// What it leaves out: F-RTO, reordering (packets keep their order), Nagle's algorithm (transports
// turn it off), the receiver's window, ECN, and giving up after fifteen time-outs. Selective
// acknowledgements tell of all packets, however many holes there are.
//
// It knows no clock and no queue: the owner takes packets by next() while there are any, after each
// call of write(), hear() and wake(). One thread at a time.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>

#include <sotto/sim/network/tcp/congestion_control.h>
#include <sotto/sim/network/tcp/round_trip_estimate.h>
#include <sotto/sim/time.h>

namespace sotto {

/// A packet as it leaves its sender.
struct SentPacket {
  std::uint64_t number = 0;        ///< its place in the stream, from 0
  std::uint64_t transmission = 0;  ///< counts all packets that left, also those sent again
  std::uint32_t bytes = 0;         ///< payload
};

/// A packet that arrived at the receiver, as acknowledgements tell of it.
struct ArrivedPacket {
  std::uint64_t number = 0;
  std::uint64_t transmission = 0;
};

/// What a sender begins with.
struct TcpSenderOptions {
  int window = 10;             ///< packets that may be under way at first
  double packet_bytes = 1448;  ///< payload of a full packet
  bool window_decays = true;   ///< the window shrinks while the sender is idle
  SimTime round_trip = 0;      ///< of the handshake
  Congestion congestion = Congestion::reno;
};

class TcpSender {
 public:
  /// Requires a window of 1 at least.
  explicit TcpSender(const TcpSenderOptions& options);

  /// The program writes `bytes` more.
  void write(double bytes, SimTime now);
  /// The next packet that leaves now; nothing when none does.
  std::optional<SentPacket> next(SimTime now);
  /// An acknowledgement tells of packets that no earlier one told of, in the order in which they
  /// arrived.
  void hear(std::span<const ArrivedPacket> arrived, SimTime now);
  /// When wake() is to be called; kNever: nothing is awaited.
  SimTime wakes_at() const;
  /// The time of wakes_at() has come. While packets of the sender have not left their queue
  /// (`queued`) no time passes for those that await an acknowledgement: it waits for
  /// queue_drained().
  void wake(SimTime now, bool queued);
  /// The last packet has left the queue.
  void queue_drained(SimTime now);

  int window() const { return state_.window; }
  int in_flight() const { return in_flight_; }
  /// Time-outs so far.
  int timeouts() const { return timeouts_; }
  /// Packets sent again so far.
  std::uint64_t sent_again() const { return sent_again_; }

 private:
  struct Segment {
    std::uint32_t bytes = 0;
    SimTime sent_at = 0;
    SimTime heard_at = -1;  ///< the sender heard then that it had arrived
    std::uint64_t transmission = 0;
    bool arrived = false;  ///< the sender knows that
    bool lost = false;     ///< known to be lost and not sent again since
    bool again = false;    ///< was sent again
    // The state of the connection when it left, for the rate at which packets arrive.
    std::uint64_t delivered = 0;
    SimTime delivered_at = 0;
    SimTime first_sent_at = 0;
    bool idle = false;
  };
  struct Departure {
    std::uint64_t number = 0;
    std::uint64_t transmission = 0;
  };
  /// What arrived, and the rate at which it does.
  struct Delivery {
    std::uint64_t packets = 0;
    SimTime at = 0;
    SimTime first_sent_at = 0;
    std::uint64_t idle_until = 0;  ///< packets delivered by then left while there was too little
    std::uint64_t latest = 0;      ///< the transmission that left last of those that arrived
    SimTime round_trip = 0;        ///< of that one
  };
  /// The repair that goes on, or went on last.
  struct Repairs {
    Repair kind = Repair::none;
    std::uint64_t end = 0;  ///< the first packet behind the repair
    CongestionState before{};
    int unjustified = 0;  ///< packets sent again of which no second arrival is known
    int arrived = 0;      ///< in the repair
    int sent = 0;
    int again = 0;  ///< of these, packets that were sent again
    bool may_undo = false;
  };
  struct TailProbe {
    bool waits = false;  ///< a probe was sent, and is not judged yet
    bool is_new = false;
    bool arrived_twice = false;
    bool may_leave = false;  ///< one packet may leave beyond the window
    std::uint64_t end = 0;
    std::uint64_t number = 0;
  };
  /// Whether the window held the sender up (Linux tcp_cwnd_validate).
  struct Usage {
    bool limited = false;
    int most_out = 0;  ///< packets not acknowledged, the most since that was judged
    std::uint64_t end = 0;
  };
  struct Pacing {
    bool waits = false;  ///< a packet waits for `until`
    SimTime until = 0;
  };
  enum class Timer : std::uint8_t { none, timeout, probe, reorder, suspended };

  Segment& at(std::uint64_t number) { return segments_[number - first_]; }
  std::uint64_t end() const { return first_ + segments_.size(); }
  SimTime timeout() const { return round_trip_.timeout(failures_); }

  // What leaves (tcp_sender.cc).
  SentPacket send(std::uint64_t number, SimTime now);
  SentPacket send_new(SimTime now);
  void rest(SimTime now);
  void arm(SimTime now, bool anew);

  // What is heard (tcp_sender_news.cc).
  void note(const ArrivedPacket& arrived, Told& told);
  void measure(const Segment& segment, Told& told);
  void take_front(Told& told);
  void find_losses(Told& told);
  void begin_repair(Repair repair);
  void end_repair();
  void undo();
  void reduce(const Told& told);
  void judge_probe();
  void time_out(SimTime now);
  void probe(SimTime now);

  double packet_bytes_;
  bool window_decays_;
  int first_window_;
  CongestionState state_;
  RoundTripEstimate round_trip_;
  std::unique_ptr<CongestionControl> control_;

  std::deque<Segment> segments_;      ///< those that are not acknowledged with all before them
  std::uint64_t first_ = 0;           ///< the number of the first of these
  double unsent_ = 0;                 ///< bytes that were written and never sent
  std::deque<Departure> departures_;  ///< of packets under way, in order; some are out of date
  std::uint64_t transmissions_ = 0;
  int in_flight_ = 0;
  int lost_ = 0;     ///< packets that are to be sent again
  int arrived_ = 0;  ///< packets of segments_ that arrived
  SimTime last_sent_ = -1;

  Delivery delivery_;
  Repairs repairs_;
  TailProbe probe_;
  Usage usage_;
  Pacing pacing_;

  Timer timer_ = Timer::none;
  SimTime timer_at_ = kNever;
  int failures_ = 0;  ///< time-outs in a row
  int timeouts_ = 0;
  std::uint64_t sent_again_ = 0;
  std::uint64_t trip_ends_ = 0;  ///< the first packet of the next round trip that is measured
};

}  // namespace sotto
