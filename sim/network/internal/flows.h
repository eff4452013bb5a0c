// The flows of a network's connections: each has a share of the links of its way, at which the
// bytes in front of it leave. A flow that changes its rate books what has left until then; what
// happens to it next is one event in the queue, which takes the place of the one before.
//
// One thread at a time. Ways and queue outlive it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <sotto/sim/event_queue.h>
#include <sotto/sim/network/acknowledgement_load.h>
#include <sotto/sim/network/fair_share.h>

#include "connection_ways.h"

namespace sotto {

/// The flow of one connection.
struct Flow {
  double remaining = 0;  ///< bytes in front that have not left; below 0: more than these have
  double rate = 0;       ///< bytes/s
  SimTime since = 0;     ///< time for which `remaining` holds
  std::uint32_t version = 0;
  bool flowing = false;
  /// Crosses a limited link, has a bound or may come to have one; for good.
  bool limited = false;
};

class Flows {
 public:
  Flows(const Platform& platform, const NetworkModel& model, ConnectionWays& ways,
        EventQueue& queue);

  void reserve(std::size_t more);
  /// The flow of the connection whose ways were added last.
  void add();
  const Flow& operator[](ConnectionId id) const { return flows_[id]; }

  /// This many bytes are in front.
  void set_remaining(ConnectionId id, double bytes) { flows_[id].remaining = bytes; }
  /// The flow takes its share of the links from now on. Without limits all leaves at once.
  void start(ConnectionId id);
  /// The flow gives its share back.
  void stop(ConnectionId id);
  /// Books the bytes that have left since the last call, of a flow with a rate `most` at most.
  /// Returns these; empty where no time has passed, or all leaves at once.
  std::optional<double> advance(ConnectionId id, double most = kUnlimited);

  /// When `bytes` more will have left, at the rate of now. Requires a rate above 0.
  SimTime time_after(ConnectionId id, double bytes) const;
  /// Puts what happens to the flow next into the queue.
  void expect(ConnectionId id, SimTime time, Network::Kind kind);
  /// Puts the time at which nothing remains into the queue, if the flow moves (message_ends).
  void expect_end(ConnectionId id);
  /// What was put into the queue happens no more.
  void expect_nothing(ConnectionId id) { ++flows_[id].version; }
  /// Whether the event is the one that was put into the queue last.
  bool expects(const Event& event) const { return flows_[event.subject].version == event.version; }

  /// Shares the links anew where something changed. Returns the flows whose rates did, each of
  /// which goes on by advance() and take_rate(); valid until the next call.
  std::span<const FlowId> settle();
  /// Goes on at the rate that the shares give now.
  void take_rate(ConnectionId id);
  /// How long a packet waits behind those of other flows, where packets take turns.
  SimTime queueing_delay(ConnectionId id) const {
    return queueing_delays_.empty() ? 0 : queueing_delays_[id];
  }

  /// A link has another bandwidth and latency from now on.
  void change(const LinkChange& change);
  const FairShare& shares() const { return share_; }

 private:
  /// The limited links that a flow takes a part of.
  std::vector<Crossing> crossings(ConnectionId id) const;
  /// Takes the flow's weight and bound anew from its links.
  void update(ConnectionId id);
  /// Charges the way back with the acknowledgements of a flow of this rate.
  void charge_acknowledgements(ConnectionId id, double rate);
  /// Shares the links until the charged acknowledgements fit the rates.
  std::span<const FlowId> settle_with_acknowledgements();
  bool packets_take_turns() const { return model_.packet_bytes > 0; }

  NetworkModel model_;
  ConnectionWays& ways_;
  EventQueue& queue_;
  FairShare share_;  ///< a flow has the number of its connection
  AcknowledgementLoad acknowledgements_;
  std::vector<Flow> flows_;
  std::vector<SimTime> queueing_delays_;  ///< by connection; none where no packets take turns
  std::vector<FlowId> settled_;           ///< flows with changed rates
};

}  // namespace sotto
