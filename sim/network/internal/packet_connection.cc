#include "packet_connection.h"

#include <algorithm>

namespace sotto {
namespace {

/// Added to the receiver's rank, they key what a connection loses apart from its jitter: a rank is
/// below them.
constexpr std::uint32_t kLosses = 1U << 23U;

}  // namespace

std::vector<LinkLoss> Network::PacketConnection::losses_along(const Network& network,
                                                              const Path& path) {
  std::vector<LinkLoss> losses;
  for (const LinkId link : network.links(path)) {
    const LinkState& state = network.links_[link];
    if (state.loss > 0) {
      losses.push_back({state.loss, state.loss_burst});
    }
  }
  return losses;
}

std::unique_ptr<PacketStream> Network::PacketConnection::make_stream(const Network& network,
                                                                     ConnectionId id) {
  const Connection& connection = network.connections_[id];
  const auto there = losses_along(network, connection.path);
  const auto back = losses_along(network, connection.reverse_path);
  const bool overflows = network.links_.may_overflow(network.links(connection.path));
  const bool overflows_back = network.links_.may_overflow(network.links(connection.reverse_path));
  if (!network.slow_start() || (there.empty() && back.empty() && !overflows && !overflows_back)) {
    return nullptr;
  }
  const auto key = [&](Rank from, Rank to) {
    // A connection that begins anew meets other losses.
    constexpr std::uint64_t kEach = 0x9E37'79B9'7F4A'7C15;
    return RandomKey{.seed = network.seed_ + connection.epoch * kEach,
                     .rank = from,
                     .round = id,
                     .purpose = Purpose::jitter,
                     .bucket = kLosses + static_cast<std::uint32_t>(to)};
  };
  const NetworkModel& model = network.model_;
  const double window = model.initial_window_bytes / model.segment_bytes;
  const TcpSenderOptions options = {.window = std::max(static_cast<int>(std::min(window, 1e6)), 1),
                                    .packet_bytes = model.segment_bytes,
                                    .window_decays = model.window_decays,
                                    .round_trip = network.round_trip(id),
                                    .congestion = model.congestion};
  auto stream = std::make_unique<PacketStream>(
      options, PacketLosses(there, key(connection.from, connection.to)),
      PacketLosses(back, key(connection.to, connection.from)));
  stream->may_overflow = overflows;
  return stream;
}

void Network::PacketConnection::write(std::uint64_t bytes, bool notice) {
  stream_.write(bytes, notice, now());
  send_packets();
}

void Network::PacketConnection::send_packets() {
  const auto back = reverse();
  while (const auto packet = stream_.sender.next(now())) {
    StreamPacket made = {.data = *packet};
    if (back) {
      other(*back).take_acknowledgement(made);
    }
    stream_.data_queued += put_into_queue(made) ? std::size_t{1} : std::size_t{0};
  }
  const SimTime at = stream_.sender.wakes_at();
  if (at < stream_.wakes_at) {
    stream_.wakes_at = std::max(at, now());
    push(stream_.wakes_at, sender_wakes);
  }
}

void Network::PacketConnection::wake_sender(const Event& event) {
  if (event.version != connection_.epoch || event.time != stream_.wakes_at) {
    return;
  }
  stream_.wakes_at = kNever;
  stream_.sender.wake(now(), stream_.data_queued > 0);
  send_packets();
}

bool Network::PacketConnection::put_into_queue(StreamPacket packet) {
  if (stream_.may_overflow && packet.data.bytes > 0) {
    packet.waits_for = bottleneck();
    if (!network_.links_.enter_queue(packet.waits_for, room_of(packet))) {
      return false;
    }
  }
  stream_.queue.push(packet);
  if (stream_.queue.size() == 1) {
    send_front();
  }
  return true;
}

LinkId Network::PacketConnection::bottleneck() const {
  const bool has_rate = connection_.flowing && connection_.rate > 0;
  const auto link = has_rate ? network_.share_.bottleneck(id_) : std::nullopt;
  return link ? *link
              : network_.links_.least_share(network_.links(connection_.path), connection_.flowing);
}

void Network::PacketConnection::leave_queue(const StreamPacket& packet) {
  if (stream_.may_overflow && packet.data.bytes > 0) {
    network_.links_.leave_queue(packet.waits_for, room_of(packet));
  }
}

void Network::PacketConnection::empty_queue() {
  for (const StreamPacket& packet : stream_.queue.items()) {
    leave_queue(packet);
  }
}

void Network::PacketConnection::send_front() {
  while (!stream_.queue.empty() && stream_.queue.front().data.bytes == 0) {
    leave(stream_.queue.pop());
  }
  if (stream_.queue.empty()) {
    stream_.ahead = 0;
    network_.stop(id_);
    return;
  }
  connection_.remaining = stream_.queue.front().data.bytes - stream_.ahead;
  if (connection_.flowing) {
    network_.schedule(id_);
  } else {
    network_.flow(id_);
  }
}

void Network::PacketConnection::leave_front() {
  network_.advance(id_);
  // What of the last nanosecond was not needed is the next packet's.
  stream_.ahead = std::max(0.0, -connection_.remaining);
  --stream_.data_queued;
  leave_queue(stream_.queue.front());
  leave(stream_.queue.pop());
  send_front();
  if (stream_.data_queued == 0) {
    stream_.sender.queue_drained(now());
    send_packets();
  }
}

void Network::PacketConnection::leave(const StreamPacket& packet) {
  if (stream_.losses.lose() || !network_.passable(id_)) {
    return;  // an acknowledgement without data waits for no link that is cut
  }
  const SimTime lands = plus(network_.latency_of_next(connection_), network_.queueing_delay(id_));
  connection_.last_landing = std::max(plus(now(), lands), connection_.last_landing);
  stream_.moving.push({packet, connection_.last_landing});
  push(connection_.last_landing, packet_arrives);
}

void Network::PacketConnection::take_packet(const Event& event) {
  if (event.version != connection_.epoch) {
    return;
  }
  const StreamPacket packet = stream_.moving.pop().packet;
  if (packet.of < network_.connections_.size() &&
      packet.epoch == network_.connections_[packet.of].epoch) {
    other(packet.of).tell(packet.acknowledges);
  }
  if (packet.data.bytes == 0) {
    return;
  }
  stream_.arrived.push({packet.data.number, packet.data.transmission});
  stream_.read += static_cast<double>(stream_.receiver.take(packet.data, now()));
  deliver();
  if (stream_.receiver.due_at() <= now()) {
    send_acknowledgement();
  } else if (stream_.receiver.due_at() < stream_.acknowledges_at) {
    stream_.acknowledges_at = stream_.receiver.due_at();
    push(stream_.acknowledges_at, acknowledgement_due);
  }
}

void Network::PacketConnection::deliver() {
  while (!stream_.messages.empty() && stream_.messages.front().end <= stream_.read) {
    const StreamMessage message = stream_.messages.pop();
    if (message.notice) {
      continue;
    }
    --stream_.awaited;
    connection_.landing.push({message.bytes, now()});
    push(now(), message_arrives);
  }
}

void Network::PacketConnection::acknowledge_late(const Event& event) {
  if (event.version != connection_.epoch || event.time != stream_.acknowledges_at) {
    return;
  }
  stream_.acknowledges_at = kNever;
  const SimTime due = stream_.receiver.due_at();
  if (due <= now()) {
    send_acknowledgement();
  } else if (due != kNever) {
    stream_.acknowledges_at = due;
    push(due, acknowledgement_due);
  }
}

void Network::PacketConnection::take_acknowledgement(StreamPacket& packet) {
  stream_.receiver.acknowledge();
  packet.acknowledges = stream_.heard + stream_.arrived.size();
  packet.of = id_;
  packet.epoch = connection_.epoch;
}

void Network::PacketConnection::send_acknowledgement() {
  StreamPacket packet;
  take_acknowledgement(packet);
  if (const auto back = reverse()) {
    other(*back).put_into_queue(packet);
    return;
  }
  if (!stream_.losses_back.lose() && network_.passable_back(id_)) {
    const SimTime last = stream_.moving_back.empty() ? 0 : stream_.moving_back.items().back().at;
    const SimTime at = std::max(plus(now(), network_.latency_back(id_)), last);
    stream_.moving_back.push({packet, at});
    push(at, acknowledged);
  }
}

void Network::PacketConnection::take_lone_acknowledgement(const Event& event) {
  if (event.version == connection_.epoch) {
    tell(stream_.moving_back.pop().packet.acknowledges);
  }
}

void Network::PacketConnection::tell(std::uint64_t acknowledges) {
  if (acknowledges <= stream_.heard) {
    return;
  }
  const auto news = static_cast<std::size_t>(acknowledges - stream_.heard);
  stream_.sender.hear(stream_.arrived.items().first(news), now());
  for (std::size_t i = 0; i < news; ++i) {
    (void)stream_.arrived.pop();
  }
  stream_.heard = acknowledges;
  send_packets();
}

}  // namespace sotto
