// The acknowledgements of one TCP connection, on the way back: when the first one of a window of
// the sender (congestion_window.h) leaves the receiver.
//
// Acknowledgements have no queue of their own. They follow what the receiver itself sends back, as
// far as its own window let that into the queue before them; then they take the latency of the way
// back. The sender's window turns no sooner than the first acknowledgement of its round trip is
// there.
//
// One thread at a time. A plain value.
#pragma once

#include <cstdint>

#include <sotto/sim/time.h>

namespace sotto {

/// The data that a connection's receiver sends back to its sender, at present: acknowledgements
/// share its queue.
struct ReverseStream {
  double sent = 0;         ///< bytes that have left since the connection began
  double queued = 0;       ///< bytes behind these that the window lets wait in the queue
  double bytes_per_s = 0;  ///< rate at which the queue leaves; 0 while a link is cut
  bool flowing = false;    ///< something is under way to leave
};

class Acknowledgements {
 public:
  /// A round trip of the sender's window begins. Where the acknowledgements of a connection share
  /// a queue (`share`), its first one is then to come; otherwise they return as soon as they can.
  void start_round(bool share) { stage_ = share ? Stage::awaited : Stage::returns; }
  /// The first acknowledgement of the round trip has left the receiver, or nothing can delay it.
  bool returning() const { return stage_ == Stage::returns; }
  /// The acknowledged bytes have reached the receiver: the acknowledgement joins the queue of
  /// `reverse`, unless it is there. Returns after what time to call this again; 0 when it has left.
  /// Behind a link that is cut that is a `round_trip`, or a millisecond if that is longer. Requires
  /// !returning().
  SimTime advance(const ReverseStream& reverse, SimTime round_trip);

 private:
  /// The place of the round trip's first acknowledgement.
  enum class Stage : std::uint8_t {
    awaited,  ///< the bytes that it acknowledges are still under way
    queues,   ///< it queues behind data that the receiver sends back
    returns,
  };

  double leaves_after_ = 0;  ///< bytes of the reverse stream that leave before it
  Stage stage_ = Stage::returns;
};

}  // namespace sotto
