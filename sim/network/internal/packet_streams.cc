#include "packet_streams.h"

#include <algorithm>

#include <sotto/base/check.h>

namespace sotto {
namespace {

/// Added to the receiver's rank, they key what a connection loses apart from its jitter: a rank is
/// below them.
constexpr std::uint32_t kLosses = 1U << 23U;

TcpSenderOptions sender_options(const NetworkModel& model) {
  const double window = model.initial_window_bytes / model.segment_bytes;
  return {.window = std::max(static_cast<int>(std::min(window, 1e6)), 1),
          .packet_bytes = model.segment_bytes,
          .window_decays = model.window_decays,
          .congestion = model.congestion};
}

}  // namespace

PacketStreams::PacketStreams(const NetworkModel& model, std::uint64_t seed,
                             const ConnectionPairs& pairs, ConnectionWays& ways, Flows& flows,
                             EventQueue& queue)
    : seed_(seed),
      bandwidth_factor_(model.bandwidth_factor),
      options_(sender_options(model)),
      pairs_(pairs),
      ways_(ways),
      flows_(flows),
      queue_(queue) {}

std::vector<LinkLoss> PacketStreams::losses_along(std::span<const LinkId> way) const {
  std::vector<LinkLoss> losses;
  for (const LinkId link : way) {
    const LinkState& state = ways_.links()[link];
    if (state.loss > 0) {
      losses.push_back({state.loss, state.loss_burst});
    }
  }
  return losses;
}

RandomKey PacketStreams::losses_key(ConnectionId id, Rank from, Rank to) const {
  constexpr std::uint64_t kEach = 0x9E37'79B9'7F4A'7C15;
  return {.seed = seed_ + lines_[id].epoch * kEach,
          .rank = from,
          .round = id,
          .purpose = Purpose::jitter,
          .bucket = kLosses + static_cast<std::uint32_t>(to)};
}

std::unique_ptr<PacketStream> PacketStreams::make_stream(ConnectionId id) const {
  const Rank from = ways_.from(id);
  const Rank to = ways_.to(id);
  TcpSenderOptions options = options_;
  options.round_trip = ways_.round_trip(id);
  auto stream = std::make_unique<PacketStream>(
      options, PacketLosses(losses_along(ways_.there(id)), losses_key(id, from, to)),
      PacketLosses(losses_along(ways_.back(id)), losses_key(id, to, from)));
  stream->may_overflow = ways_.links().may_overflow(ways_.there(id));
  return stream;
}

void PacketStreams::add_if_lossy(ConnectionId id) {
  const auto loses = [&](std::span<const LinkId> way) {
    return !losses_along(way).empty() || ways_.links().may_overflow(way);
  };
  if (!loses(ways_.there(id)) && !loses(ways_.back(id))) {
    return;
  }
  lines_.resize(id + std::size_t{1});
  lines_[id].stream = make_stream(id);
}

void PacketStreams::abort(ConnectionId id) {
  flows_.stop(id);
  flows_.expect_nothing(id);
  for (const StreamPacket& packet : at(id).queue.items()) {
    leave_queue(id, packet);
  }
  ++lines_[id].epoch;
  lines_[id].stream = make_stream(id);
}

void PacketStreams::take_rate(ConnectionId id) {
  flows_.advance(id);
  flows_.take_rate(id);
  flows_.expect_end(id);
}

std::size_t PacketStreams::under_way(ConnectionId id) const {
  const PacketStream& stream = *lines_[id].stream;
  return stream.awaited + stream.landed.size();
}

std::optional<std::uint64_t> PacketStreams::handle(const Event& event) {
  const ConnectionId id = event.subject;
  if (event.kind == Network::message_ends) {
    if (flows_.expects(event)) {
      leave_front(id);
    }
    return {};
  }
  if (event.version != lines_[id].epoch) {
    return {};
  }
  switch (event.kind) {
    case Network::packet_arrives:
      take_packet(id);
      return {};
    case Network::message_arrives:
      return at(id).landed.pop();
    case Network::acknowledged:
      tell(id, at(id).moving_back.pop().packet.acknowledges);
      return {};
    case Network::acknowledgement_due:
      acknowledge_late(id, event.time);
      return {};
    case Network::sender_wakes:
      wake_sender(id, event.time);
      return {};
    default:
      check(false, "an event of another kind is not the network's");
      return {};
  }
}

// The way there.

void PacketStreams::write(ConnectionId id, std::uint64_t bytes, bool notice) {
  at(id).write(bytes, notice, queue_.now());
  send_packets(id);
}

void PacketStreams::send_packets(ConnectionId id) {
  PacketStream& stream = at(id);
  const auto back = pairs_.reverse(id);
  while (const auto packet = stream.sender.next(queue_.now())) {
    StreamPacket made = {.data = *packet};
    if (back) {
      acknowledge_with(*back, made);
    }
    stream.data_queued += put_into_queue(id, made) ? std::size_t{1} : std::size_t{0};
  }
  const SimTime wakes = stream.sender.wakes_at();
  if (wakes < stream.wakes_at) {
    stream.wakes_at = std::max(wakes, queue_.now());
    push(id, stream.wakes_at, Network::sender_wakes);
  }
}

void PacketStreams::wake_sender(ConnectionId id, SimTime due) {
  PacketStream& stream = at(id);
  if (due == stream.wakes_at) {
    stream.wakes_at = kNever;
    stream.sender.wake(queue_.now(), stream.data_queued > 0);
    send_packets(id);
  }
}

bool PacketStreams::put_into_queue(ConnectionId id, StreamPacket packet) {
  PacketStream& stream = at(id);
  if (stream.may_overflow && packet.data.bytes > 0) {
    packet.waits_for = bottleneck(id);
    if (!ways_.links().enter_queue(packet.waits_for, room_of(packet))) {
      return false;
    }
  }
  stream.queue.push(packet);
  if (stream.queue.size() == 1) {
    send_front(id);
  }
  return true;
}

LinkId PacketStreams::bottleneck(ConnectionId id) const {
  const Flow& flow = flows_[id];
  const bool has_rate = flow.flowing && flow.rate > 0;
  const auto link = has_rate ? flows_.shares().bottleneck(id) : std::nullopt;
  return link ? *link : ways_.links().least_share(ways_.there(id), flow.flowing);
}

void PacketStreams::leave_queue(ConnectionId id, const StreamPacket& packet) {
  if (at(id).may_overflow && packet.data.bytes > 0) {
    ways_.links().leave_queue(packet.waits_for, room_of(packet));
  }
}

void PacketStreams::send_front(ConnectionId id) {
  PacketStream& stream = at(id);
  while (!stream.queue.empty() && stream.queue.front().data.bytes == 0) {
    leave(id, stream.queue.pop());
  }
  if (stream.queue.empty()) {
    stream.ahead = 0;
    flows_.stop(id);
    return;
  }
  flows_.set_remaining(id, stream.queue.front().data.bytes - stream.ahead);
  if (flows_[id].flowing) {
    flows_.expect_end(id);
  } else {
    flows_.start(id);
  }
}

void PacketStreams::leave_front(ConnectionId id) {
  PacketStream& stream = at(id);
  flows_.advance(id);
  // What of the last nanosecond was not needed is the next packet's.
  stream.ahead = std::max(0.0, -flows_[id].remaining);
  --stream.data_queued;
  leave_queue(id, stream.queue.front());
  leave(id, stream.queue.pop());
  send_front(id);
  if (stream.data_queued == 0) {
    stream.sender.queue_drained(queue_.now());
    send_packets(id);
  }
}

void PacketStreams::leave(ConnectionId id, const StreamPacket& packet) {
  PacketStream& stream = at(id);
  if (stream.losses.lose() || !ways_.open(id)) {
    return;  // an acknowledgement without data waits for no link that is cut
  }
  const SimTime lasts = plus(ways_.draw_latency(id), flows_.queueing_delay(id));
  stream.last_landing = std::max(plus(queue_.now(), lasts), stream.last_landing);
  stream.moving.push({packet, stream.last_landing});
  push(id, stream.last_landing, Network::packet_arrives);
}

void PacketStreams::take_packet(ConnectionId id) {
  PacketStream& stream = at(id);
  const StreamPacket packet = stream.moving.pop().packet;
  if (has(packet.of) && packet.epoch == lines_[packet.of].epoch) {
    tell(packet.of, packet.acknowledges);
  }
  if (packet.data.bytes == 0) {
    return;
  }
  stream.arrived.push({packet.data.number, packet.data.transmission});
  stream.read += static_cast<double>(stream.receiver.take(packet.data, queue_.now()));
  deliver(id);
  const SimTime due = stream.receiver.due_at();
  if (due <= queue_.now()) {
    send_acknowledgement(id);
  } else if (due < stream.acknowledges_at) {
    stream.acknowledges_at = due;
    push(id, due, Network::acknowledgement_due);
  }
}

void PacketStreams::deliver(ConnectionId id) {
  PacketStream& stream = at(id);
  while (!stream.messages.empty() && stream.messages.front().end <= stream.read) {
    const StreamMessage message = stream.messages.pop();
    if (message.notice) {
      continue;
    }
    --stream.awaited;
    stream.landed.push(message.bytes);
    push(id, queue_.now(), Network::message_arrives);
  }
}

// The way back.

void PacketStreams::acknowledge_late(ConnectionId id, SimTime due) {
  PacketStream& stream = at(id);
  if (due != stream.acknowledges_at) {
    return;
  }
  stream.acknowledges_at = kNever;
  const SimTime next = stream.receiver.due_at();
  if (next <= queue_.now()) {
    send_acknowledgement(id);
  } else if (next != kNever) {
    stream.acknowledges_at = next;
    push(id, next, Network::acknowledgement_due);
  }
}

void PacketStreams::acknowledge_with(ConnectionId id, StreamPacket& packet) {
  PacketStream& stream = at(id);
  stream.receiver.acknowledge();
  packet.acknowledges = stream.heard + stream.arrived.size();
  packet.of = id;
  packet.epoch = lines_[id].epoch;
}

void PacketStreams::send_acknowledgement(ConnectionId id) {
  PacketStream& stream = at(id);
  StreamPacket packet;
  acknowledge_with(id, packet);
  if (const auto back = pairs_.reverse(id)) {
    (void)put_into_queue(*back, packet);  // without data it waits in no link's queue
    return;
  }
  if (!stream.losses_back.lose() && ways_.open_back(id)) {
    const SimTime last = stream.moving_back.empty() ? 0 : stream.moving_back.items().back().at;
    const SimTime lands = std::max(plus(queue_.now(), ways_.latency_back(id)), last);
    stream.moving_back.push({packet, lands});
    push(id, lands, Network::acknowledged);
  }
}

void PacketStreams::tell(ConnectionId id, std::uint64_t acknowledges) {
  PacketStream& stream = at(id);
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
