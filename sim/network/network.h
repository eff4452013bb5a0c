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
// platform only in the constructor and in connect(), until which it must stay; the queue must
// outlive it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <sotto/sim/event_queue.h>
#include <sotto/sim/network/acknowledgement_load.h>
#include <sotto/sim/network/fair_share.h>
#include <sotto/sim/network/link_states.h>
#include <sotto/sim/network/link_traces.h>
#include <sotto/sim/network/network_model.h>
#include <sotto/sim/network/path_store.h>
#include <sotto/sim/network/platform.h>
#include <sotto/sim/network/tcp/congestion_window.h>
#include <sotto/sim/network/tcp/tcp_stream.h>

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
  /// A connection along the platform's route; throws Error when there is none.
  ConnectionId connect(Rank from, Rank to);

  /// A message goes out now, behind those before it on the connection.
  void send(ConnectionId connection, std::uint64_t bytes);
  /// A message of no size goes back along a connection, in the stream of the way back: a receiver
  /// that lacks that stream's last packet then acknowledges selectively, and its sender hears.
  void notify_back(ConnectionId connection);
  /// Says, before the first connection, that set_bandwidth will be called for a link.
  void expect_bandwidths(LinkId link) { links_.expect_change(link); }
  /// A link of expect_bandwidths that is limited has another bandwidth from now on, above 0.
  void set_bandwidth(LinkId link, double bytes_per_s) {
    change(link, bytes_per_s, links_[link].latency);
  }
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
  std::span<const double> carried() const { return carried_; }
  /// Bytes that a link could have carried until now.
  double offered(LinkId link) const { return links_.offered(link, now()); }
  const FairShare& shares() const { return share_; }
  /// Events of the queue that are the next steps of links' traces. Traces that repeat have one for
  /// ever.
  std::size_t trace_events() const { return trace_events_; }

 private:
  using Path = PathStore::Path;
  // What this class has of one connection, each in a file of internal/.
  struct Connection;         ///< its state
  class PacketConnection;    ///< over ways that lose packets: packet by packet
  class WindowedConnection;  ///< with a TCP window, where nothing is lost

  std::vector<Crossing> crossings(const Connection& connection) const;
  void update_route(ConnectionId id);
  /// Charges the way back with the acknowledgements of a flow of this rate.
  void charge_acknowledgements(ConnectionId id, double rate);
  /// Shares the links until the charged acknowledgements fit the rates. Returns the connections
  /// with changed rates.
  std::span<const ConnectionId> settle_with_acknowledgements();
  /// Goes on at the rate that the shares give now.
  void take_rate(ConnectionId id);
  std::span<const LinkId> links(const Path& path) const { return paths_.links(path); }
  /// The way back, or the way there where there is none.
  std::span<const LinkId> reverse_links(const Connection& connection) const;
  /// How long a packet and its acknowledgement take, without queues.
  SimTime round_trip(ConnectionId id) const;
  SimTime latency_of_next(Connection& connection) const;
  SimTime queueing_delay(ConnectionId id) const {
    return queueing_delays_.empty() ? 0 : queueing_delays_[id];
  }
  CongestionWindow fresh_window() const {
    return CongestionWindow(model_.initial_window_bytes,
                            model_.window_decays && model_.congestion != Congestion::bbr);
  }
  /// How the bytes of a connection leave.
  enum class Sending : std::uint8_t {
    fluid,     ///< at the rate of its share, from the first byte on
    windowed,  ///< as far as a TCP window lets them: WindowedConnection
    packets,   ///< packet by packet, of which some are lost: PacketConnection
  };
  Sending sending(ConnectionId id) const {
    return !slow_start()                   ? Sending::fluid
           : tcp_[id].packets() == nullptr ? Sending::windowed
                                           : Sending::packets;
  }
  bool slow_start() const { return model_.initial_window_bytes < kUnlimited; }
  /// The message at the front of a connection goes out.
  void begin(ConnectionId id);
  /// The connection takes its share of the links from now on.
  void flow(ConnectionId id);
  /// The connection gives its share of the links back.
  void stop(ConnectionId id);
  /// Tells that the connection's flow has begun or ended, where packets take turns.
  void count_flow(const Connection& connection, bool flows);
  /// Books the bytes that have left the sender since the last call.
  void advance(ConnectionId id);
  /// Puts the next thing that happens to the flow into the queue: its end or a turn of the window.
  void schedule(ConnectionId id);
  /// Finds the stream of the other direction, in whose queue acknowledgements wait.
  void pair_streams(ConnectionId id);
  /// Null where the connection loses nothing, or its losses are a mean rate.
  PacketStream* stream_of(ConnectionId id) { return slow_start() ? tcp_[id].packets() : nullptr; }
  const PacketStream* stream_of(ConnectionId id) const {
    return slow_start() ? tcp_[id].packets() : nullptr;
  }
  /// The last byte of a message has left: the message lands a latency later, or arrives now.
  std::optional<Arrival> end(ConnectionId id);
  /// The next message of a connection follows, of which `ahead` bytes have left already.
  void go_on(ConnectionId id, double ahead);
  /// The message in front arrives, if the event is not of one that was dropped since.
  std::optional<Arrival> land(const Event& event);
  /// What happens to the message that flows, or is about to.
  std::optional<Arrival> go_on_with(const Event& event);
  /// A message is delivered.
  Arrival arrive(ConnectionId id, std::uint64_t bytes);
  /// A link has another bandwidth and latency from now on.
  void change(LinkId id, double bytes_per_s, SimTime latency);
  /// The next step of a link's trace begins. `number` is that of the trace.
  void step_trace(std::uint32_t number);
  /// Puts the next step of a link's trace into the queue, if there is one.
  void schedule_trace(std::uint32_t number);

  const Platform& platform_;  ///< gone, perhaps, once all are connected
  NetworkModel model_;
  std::uint64_t seed_;
  EventQueue& queue_;
  LinkStates links_;
  PathStore paths_;
  FairShare share_;
  std::vector<Connection> connections_;
  std::vector<TcpStream> tcp_;  ///< by connection; none without slow start
  /// Delays of packets behind those of other flows, by connection; none where none take turns.
  std::vector<SimTime> queueing_delays_;
  AcknowledgementLoad acknowledgements_;
  /// Connections by (from, to), where acknowledgements queue.
  std::map<std::pair<Rank, Rank>, ConnectionId> by_ends_;
  std::vector<LinkChange> changes_;
  LinkTraces traces_;
  std::size_t trace_events_ = 0;
  std::vector<double> carried_;
  std::vector<ConnectionId> settled_;  ///< connections with changed rates
};

}  // namespace sotto
