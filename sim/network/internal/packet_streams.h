// Connections over ways that lose packets, packet by packet (tcp/packet_stream.h). A packet leaves
// the queue of its sender at the share of the links that the connection has, and is lost or arrives
// a latency later. Acknowledgements go with the data of the other way, behind what is in its queue,
// and are lost as packets are.
//
// One thread at a time. Ways, flows, pairs and queue outlive it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include <sotto/base/philox.h>
#include <sotto/sim/network/tcp/packet_stream.h>

#include "connection_pairs.h"
#include "flows.h"
#include "streams.h"

namespace sotto {

class PacketStreams final : public Streams {
 public:
  /// Has no connection yet. `seed` is that of the losses. Connections of `pairs` carry each other's
  /// acknowledgements.
  PacketStreams(const NetworkModel& model, std::uint64_t seed, const ConnectionPairs& pairs,
                ConnectionWays& ways, Flows& flows, EventQueue& queue);

  /// The connection is one of these if either of its ways loses packets, or has a queue that can
  /// overflow. Requires a model with slow start.
  void add_if_lossy(ConnectionId id);
  /// Whether the connection is one of these.
  bool has(ConnectionId id) const { return id < lines_.size() && lines_[id].stream != nullptr; }
  /// A message of no size, which nobody awaits, goes out as any other.
  void send_notice(ConnectionId id) { write(id, 0, /*notice=*/true); }

  void send(ConnectionId id, std::uint64_t bytes) override { write(id, bytes, /*notice=*/false); }
  void abort(ConnectionId id) override;
  void take_rate(ConnectionId id) override;
  std::optional<std::uint64_t> handle(const Event& event) override;
  std::size_t under_way(ConnectionId id) const override;

 private:
  struct Line {
    std::unique_ptr<PacketStream> stream;  ///< null: the connection is none of these
    std::uint32_t epoch = 0;               ///< number of aborts; events from before are ignored
  };

  PacketStream& at(ConnectionId id) { return *lines_[id].stream; }
  /// What the links of a way lose.
  std::vector<LinkLoss> losses_along(std::span<const LinkId> way) const;
  /// The key of what a way from one to the other loses: other losses after each abort.
  RandomKey losses_key(ConnectionId id, Rank from, Rank to) const;
  std::unique_ptr<PacketStream> make_stream(ConnectionId id) const;
  void push(ConnectionId id, SimTime time, Network::Kind kind) {
    queue_.push({.time = time, .subject = id, .version = lines_[id].epoch, .kind = kind});
  }

  // The way there.
  void write(ConnectionId id, std::uint64_t bytes, bool notice);
  /// Puts all that the sender lets leave now into its queue.
  void send_packets(ConnectionId id);
  /// False: the queue of the link for which it would wait has no room, and the packet is lost.
  bool put_into_queue(ConnectionId id, StreamPacket packet);
  /// The link that limits the connection, or will as far as one can tell from who flows where.
  LinkId bottleneck(ConnectionId id) const;
  /// A packet gives back the room that it has in a link's queue.
  void leave_queue(ConnectionId id, const StreamPacket& packet);
  /// Bytes that a packet with data takes in a queue, headers included.
  double room_of(const StreamPacket& packet) const { return packet.data.bytes / bandwidth_factor_; }
  /// The front of the queue takes its share of the links; what is no data leaves at once.
  void send_front(ConnectionId id);
  /// The front of the queue has left.
  void leave_front(ConnectionId id);
  /// A packet has left: it is lost, or lands a latency later.
  void leave(ConnectionId id, const StreamPacket& packet);
  void take_packet(ConnectionId id);
  /// Messages that the receiver has whole arrive.
  void deliver(ConnectionId id);
  void wake_sender(ConnectionId id, SimTime due);

  // The way back.
  /// The packet carries the acknowledgement of all that arrived on this connection.
  void acknowledge_with(ConnectionId id, StreamPacket& packet);
  void send_acknowledgement(ConnectionId id);
  /// A delayed acknowledgement leaves, if it is still due.
  void acknowledge_late(ConnectionId id, SimTime due);
  /// The sender hears of so many packets that arrived, counted from the beginning.
  void tell(ConnectionId id, std::uint64_t acknowledges);

  std::uint64_t seed_;
  double bandwidth_factor_;   ///< of what packets carry to what links do
  TcpSenderOptions options_;  ///< but for the round trip
  const ConnectionPairs& pairs_;
  ConnectionWays& ways_;
  Flows& flows_;
  EventQueue& queue_;
  std::vector<Line> lines_;  ///< by connection, up to the last one that is one of these
};

}  // namespace sotto
