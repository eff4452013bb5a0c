// Messages over a platform in virtual time: a fluid flow at its max–min fair rate, and latency.
//
// A message of b bytes takes its route's latency and the time that b bytes take at the rate that
// FairShare gives it, which changes as others come and go (the fluid model of Velho et al., "On the
// validity of flow-level TCP network models", ACM TOMACS 23(4), 2013). All links of the route are
// busy at once: from when the first byte leaves until the last has left, or one latency later
// (NetworkModel::latency_first). The messages of one connection are delivered in order and do not
// compete with each other, as over one TCP stream; connections exist from the start.
//
// The owner of the event queue takes events, hands this class those of its kinds, and calls
// settle() before the clock moves on (step() does all that). One thread at a time. Views the
// platform in the constructor and in connect() only; the queue must outlive it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include <sotto/base/ids.h>
#include <sotto/sim/event_queue.h>
#include <sotto/sim/network/fair_share.h>
#include <sotto/sim/network/network_model.h>
#include <sotto/sim/network/platform.h>
#include <sotto/sim/time.h>

namespace sotto {

/// A one-way stream from one host to another.
using ConnectionId = std::uint32_t;

/// The first message under way on a connection has arrived.
struct Arrival {
  ConnectionId connection = 0;
  std::uint64_t bytes = 0;
};

class Network {
 public:
  /// The kinds of events that are this class's. Others are free from kKinds on.
  enum Kind : std::uint32_t {
    message_begins,       ///< the message's flow begins, when latency comes first
    message_ends,         ///< the message's flow ends
    message_arrives,      ///< the message arrives, when latency comes last
    window_turns,         ///< a round trip of the window is over, or the window is used up
    packet_arrives,       ///< a packet arrives, where packets are lost
    acknowledged,         ///< an acknowledgement arrives that follows no data
    acknowledgement_due,  ///< a delayed acknowledgement leaves
    sender_wakes,         ///< a sender's time has come: a time-out, a probe, the next packet
    link_changes,
    trace_steps,  ///< the next step of a link's trace begins
    kKinds,
  };

  /// Throws Error for a model that is out of range. `seed` is that of the jitter.
  Network(const Platform& platform, const NetworkModel& model, std::uint64_t seed,
          EventQueue& queue);
  ~Network();
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;

  /// Makes room for so many more connections. Optional: it saves memory where there are many.
  void reserve(std::size_t connections);
  /// A connection along a route of the platform, which is that of the constructor; throws Error
  /// when there is none.
  ConnectionId connect(const Platform& platform, Rank from, Rank to);

  /// A message goes out now, behind those before it on the connection.
  void send(ConnectionId connection, std::uint64_t bytes);
  /// A message of no size goes back along a connection, in the stream of the way back: a receiver
  /// that lacks that stream's last packet then acknowledges selectively, and its sender hears.
  void notify_back(ConnectionId connection);
  /// Says, before the first connection, that set_bandwidth will be called for a link.
  void expect_bandwidths(LinkId link);
  /// A link of expect_bandwidths that is limited has another bandwidth from now on, above 0.
  void set_bandwidth(LinkId link, double bytes_per_s);
  /// Drops all that is under way on a connection.
  void abort(ConnectionId connection);

  /// Takes an event of kind < kKinds; an arrival when it is one.
  std::optional<Arrival> handle(const Event& event);
  /// Shares the links anew where something changed; before the clock moves on.
  void settle();
  /// Takes the next events of the queue until one is an arrival; empty when no event is left. For
  /// queues that hold no other kinds.
  std::optional<Arrival> step();

  /// Latency of the route as it is now, without jitter.
  SimTime latency(ConnectionId connection) const;
  /// Latency of the way back, without jitter; of the way there when there is no way back.
  SimTime latency_back(ConnectionId connection) const;
  /// The present.
  SimTime now() const { return queue_.now(); }
  /// No link of the route is down.
  bool passable(ConnectionId connection) const;
  /// No link of the way back is down; of the way there when there is no way back.
  bool passable_back(ConnectionId connection) const;
  /// Messages sent and neither delivered nor aborted.
  std::size_t under_way(ConnectionId connection) const;
  /// A connection with a message under way that no cut link holds up. Where no event is left, it
  /// would arrive after the end of time.
  std::optional<ConnectionId> moving() const;
  /// Whether a message is under way that moves, or will when a trace opens the links that hold it.
  bool will_move() const;
  /// Bytes of delivered messages that crossed each link.
  std::span<const double> carried() const;
  /// Bytes that a link could have carried until now.
  double offered(LinkId link) const;
  const FairShare& shares() const { return shares_; }
  /// Events of the queue that are the next steps of links' traces. Traces that repeat have one for
  /// ever.
  std::size_t trace_events() const;

 private:
  struct Parts;  ///< ways, flows and streams of the connections, each in a file of internal/

  EventQueue& queue_;
  std::unique_ptr<Parts> parts_;
  const FairShare& shares_;  ///< those of the parts' flows
};

}  // namespace sotto
