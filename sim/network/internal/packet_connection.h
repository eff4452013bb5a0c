// A connection of Network over ways that lose packets, packet by packet (tcp/packet_stream.h). A
// packet leaves the queue of its sender at the share of the links that the connection has, and is
// lost or arrives a latency later. Acknowledgements go with the data of the other way, behind what
// is in its queue, and are lost as packets are.
//
// Views the network's connection for the time of a call; all state is the network's.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include <sotto/sim/network/network.h>

#include "connection.h"

namespace sotto {

class Network::PacketConnection {
 public:
  /// Requires a connection that has a PacketStream.
  PacketConnection(Network& network, ConnectionId id)
      : network_(network),
        queue_(network.queue_),
        id_(id),
        connection_(network.connections_[id]),
        stream_(*network.stream_of(id)) {}

  /// A new stream for a connection; null where neither way loses packets.
  static std::unique_ptr<PacketStream> make_stream(const Network& network, ConnectionId id);

  /// A message, or a notice that nobody awaits, goes into the stream.
  void write(std::uint64_t bytes, bool notice);
  /// The front of the queue has left.
  void leave_front();
  /// Nothing waits any more.
  void empty_queue();

  // Events of the connection; those of before an abort are ignored.
  void wake_sender(const Event& event);
  void take_packet(const Event& event);
  /// A delayed acknowledgement leaves, if it is still due.
  void acknowledge_late(const Event& event);
  /// An acknowledgement that follows no data arrives.
  void take_lone_acknowledgement(const Event& event);

 private:
  /// What the links of a way lose.
  static std::vector<LinkLoss> losses_along(const Network& network, const Path& path);

  SimTime now() const { return queue_.now(); }
  PacketConnection other(ConnectionId id) const { return {network_, id}; }
  std::optional<ConnectionId> reverse() const { return network_.tcp_[id_].reverse(); }
  void push(SimTime time, Kind kind) {
    queue_.push({.time = time, .subject = id_, .version = connection_.epoch, .kind = kind});
  }
  /// Puts all that the sender lets leave now into its queue.
  void send_packets();
  /// False: the queue of the link for which it would wait has no room, and the packet is lost.
  bool put_into_queue(StreamPacket packet);
  /// The link that limits the connection, or will as far as one can tell from who flows where.
  LinkId bottleneck() const;
  /// A packet gives back the room that it has in a link's queue.
  void leave_queue(const StreamPacket& packet);
  /// Bytes that a packet with data takes in a queue, headers included.
  double room_of(const StreamPacket& packet) const {
    return packet.data.bytes / network_.model_.bandwidth_factor;
  }
  /// The front of the queue takes its share of the links; what is no data leaves at once.
  void send_front();
  /// A packet has left: it is lost, or lands a latency later.
  void leave(const StreamPacket& packet);
  /// Messages that the receiver has whole arrive.
  void deliver();
  /// The packet carries the acknowledgement of all that arrived on this connection.
  void take_acknowledgement(StreamPacket& packet);
  void send_acknowledgement();
  /// The sender hears of so many packets that arrived, counted from the beginning.
  void tell(std::uint64_t acknowledges);

  Network& network_;
  EventQueue& queue_;
  ConnectionId id_;
  Connection& connection_;
  PacketStream& stream_;
};

}  // namespace sotto
