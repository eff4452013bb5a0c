// Connections over ways that lose packets, in Network: packet by packet (packet_stream.h). A packet
// leaves the queue of its sender at the share of the links that the connection has, and is lost or
// arrives a latency later. Acknowledgements go with the data of the other way, behind what is in
// its queue, and are lost as packets are.
#include <sotto/sim/network/network.h>

#include <algorithm>

namespace sotto {
namespace {

/// Added to the receiver's rank, they key what a connection loses apart from its jitter: a rank is
/// below them.
constexpr std::uint32_t kLosses = 1U << 23U;

}  // namespace

std::vector<LinkLoss> Network::losses_along(const Path& path) const {
  std::vector<LinkLoss> losses;
  for (const LinkId link : links(path)) {
    if (links_[link].loss > 0) {
      losses.push_back({links_[link].loss, links_[link].loss_burst});
    }
  }
  return losses;
}

std::unique_ptr<PacketStream> Network::make_stream(ConnectionId id) const {
  const Connection& connection = connections_[id];
  const auto there = losses_along(connection.path);
  const auto back = losses_along(connection.reverse_path);
  if (!slow_start() || (there.empty() && back.empty())) {
    return nullptr;
  }
  const auto key = [&](Rank from, Rank to) {
    // A connection that begins anew meets other losses.
    constexpr std::uint64_t kEach = 0x9E37'79B9'7F4A'7C15;
    return RandomKey{.seed = seed_ + connection.epoch * kEach,
                     .rank = from,
                     .round = id,
                     .purpose = Purpose::jitter,
                     .bucket = kLosses + static_cast<std::uint32_t>(to)};
  };
  const double window = model_.initial_window_bytes / model_.segment_bytes;
  const TcpSenderOptions options = {.window = std::max(static_cast<int>(std::min(window, 1e6)), 1),
                                    .packet_bytes = model_.segment_bytes,
                                    .window_decays = model_.window_decays,
                                    .round_trip = round_trip(id),
                                    .congestion = model_.congestion};
  return std::make_unique<PacketStream>(options,
                                        PacketLosses(there, key(connection.from, connection.to)),
                                        PacketLosses(back, key(connection.to, connection.from)));
}

void Network::write(ConnectionId id, std::uint64_t bytes, bool notice) {
  stream_of(id)->write(bytes, notice, queue_.now());
  send_packets(id);
}

void Network::send_packets(ConnectionId id) {
  PacketStream& stream = *stream_of(id);
  const auto reverse = tcp_[id].reverse();
  while (const auto packet = stream.sender.next(queue_.now())) {
    StreamPacket made = {.data = *packet};
    if (reverse) {
      take_acknowledgement(*reverse, made);
    }
    ++stream.data_queued;
    put_into_queue(id, made);
  }
  const SimTime at = stream.sender.wakes_at();
  if (at < stream.wakes_at) {
    stream.wakes_at = std::max(at, queue_.now());
    queue_.push({.time = stream.wakes_at,
                 .subject = id,
                 .version = connections_[id].epoch,
                 .kind = sender_wakes});
  }
}

void Network::wake_sender(const Event& event) {
  PacketStream& stream = *stream_of(event.subject);
  if (event.version != connections_[event.subject].epoch || event.time != stream.wakes_at) {
    return;
  }
  stream.wakes_at = kNever;
  stream.sender.wake(queue_.now(), stream.data_queued > 0);
  send_packets(event.subject);
}

void Network::put_into_queue(ConnectionId id, const StreamPacket& packet) {
  PacketStream& stream = *stream_of(id);
  stream.queue.push(packet);
  if (stream.queue.size() == 1) {
    send_front(id);
  }
}

void Network::send_front(ConnectionId id) {
  Connection& connection = connections_[id];
  PacketStream& stream = *stream_of(id);
  while (!stream.queue.empty() && stream.queue.front().data.bytes == 0) {
    leave(id, stream.queue.pop());
  }
  if (stream.queue.empty()) {
    stream.ahead = 0;
    stop(id);
    return;
  }
  connection.remaining = stream.queue.front().data.bytes - stream.ahead;
  if (connection.flowing) {
    schedule(id);
  } else {
    flow(id);
  }
}

void Network::leave_front(ConnectionId id) {
  advance(id);
  PacketStream& stream = *stream_of(id);
  // What of the last nanosecond was not needed is the next packet's.
  stream.ahead = std::max(0.0, -connections_[id].remaining);
  --stream.data_queued;
  leave(id, stream.queue.pop());
  send_front(id);
  if (stream.data_queued == 0) {
    stream.sender.queue_drained(queue_.now());
    send_packets(id);
  }
}

void Network::leave(ConnectionId id, const StreamPacket& packet) {
  PacketStream& stream = *stream_of(id);
  if (stream.losses.lose() || !passable(id)) {
    return;  // an acknowledgement without data waits for no link that is cut
  }
  Connection& connection = connections_[id];
  const SimTime lands = plus(latency_of_next(connection), queueing_delay(id));
  connection.last_landing = std::max(plus(queue_.now(), lands), connection.last_landing);
  stream.moving.push({packet, connection.last_landing});
  queue_.push({.time = connection.last_landing,
               .subject = id,
               .version = connection.epoch,
               .kind = packet_arrives});
}

void Network::take_packet(const Event& event) {
  const ConnectionId id = event.subject;
  if (event.version != connections_[id].epoch) {
    return;
  }
  PacketStream& stream = *stream_of(id);
  const StreamPacket packet = stream.moving.pop().packet;
  if (packet.of < connections_.size() && packet.epoch == connections_[packet.of].epoch) {
    tell(packet.of, packet.acknowledges);
  }
  if (packet.data.bytes == 0) {
    return;
  }
  stream.arrived.push({packet.data.number, packet.data.transmission});
  stream.read += static_cast<double>(stream.receiver.take(packet.data, queue_.now()));
  deliver(id);
  if (stream.receiver.due_at() <= queue_.now()) {
    send_acknowledgement(id);
  } else if (stream.receiver.due_at() < stream.acknowledges_at) {
    stream.acknowledges_at = stream.receiver.due_at();
    queue_.push({.time = stream.acknowledges_at,
                 .subject = id,
                 .version = event.version,
                 .kind = acknowledgement_due});
  }
}

void Network::deliver(ConnectionId id) {
  Connection& connection = connections_[id];
  PacketStream& stream = *stream_of(id);
  while (!stream.messages.empty() && stream.messages.front().end <= stream.read) {
    const StreamMessage message = stream.messages.pop();
    if (message.notice) {
      continue;
    }
    --stream.awaited;
    connection.landing.push({message.bytes, queue_.now()});
    queue_.push({.time = queue_.now(),
                 .subject = id,
                 .version = connection.epoch,
                 .kind = message_arrives});
  }
}

void Network::acknowledge_late(const Event& event) {
  PacketStream& stream = *stream_of(event.subject);
  if (event.version != connections_[event.subject].epoch || event.time != stream.acknowledges_at) {
    return;
  }
  stream.acknowledges_at = kNever;
  const SimTime due = stream.receiver.due_at();
  if (due <= queue_.now()) {
    send_acknowledgement(event.subject);
  } else if (due != kNever) {
    stream.acknowledges_at = due;
    queue_.push({.time = due,
                 .subject = event.subject,
                 .version = event.version,
                 .kind = acknowledgement_due});
  }
}

void Network::take_acknowledgement(ConnectionId id, StreamPacket& packet) {
  PacketStream& stream = *stream_of(id);
  stream.receiver.acknowledge();
  packet.acknowledges = stream.heard + stream.arrived.size();
  packet.of = id;
  packet.epoch = connections_[id].epoch;
}

void Network::send_acknowledgement(ConnectionId id) {
  StreamPacket packet;
  take_acknowledgement(id, packet);
  if (const auto reverse = tcp_[id].reverse()) {
    put_into_queue(*reverse, packet);
    return;
  }
  PacketStream& stream = *stream_of(id);
  if (!stream.losses_back.lose() && passable_back(id)) {
    const SimTime last = stream.moving_back.empty() ? 0 : stream.moving_back.items().back().at;
    const SimTime at = std::max(plus(queue_.now(), latency_back(id)), last);
    stream.moving_back.push({packet, at});
    queue_.push({.time = at, .subject = id, .version = packet.epoch, .kind = acknowledged});
  }
}

void Network::take_lone_acknowledgement(const Event& event) {
  if (event.version == connections_[event.subject].epoch) {
    tell(event.subject, stream_of(event.subject)->moving_back.pop().packet.acknowledges);
  }
}

void Network::tell(ConnectionId id, std::uint64_t acknowledges) {
  PacketStream& stream = *stream_of(id);
  if (acknowledges <= stream.heard) {
    return;
  }
  const auto news = static_cast<std::size_t>(acknowledges - stream.heard);
  stream.sender.hear(stream.arrived.items().first(news), queue_.now());
  for (std::size_t i = 0; i < news; ++i) {
    (void)stream.arrived.pop();
  }
  stream.heard = acknowledges;
  send_packets(id);
}

}  // namespace sotto
