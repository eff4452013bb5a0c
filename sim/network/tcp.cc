// TCP in Network where nothing is lost: windows that turn, and acknowledgements that wait in the
// queue of the data that goes their way.
#include <sotto/sim/network/network.h>

#include <algorithm>

namespace sotto {

void Network::find_reverse(ConnectionId id) {
  if (!slow_start() || (model_.packet_bytes == 0 && tcp_[id].packets() == nullptr)) {
    return;
  }
  const Connection& connection = connections_[id];
  by_ends_.try_emplace({connection.from, connection.to}, id);
  if (const auto back = by_ends_.find({connection.to, connection.from}); back != by_ends_.end()) {
    tcp_[id].pair_with(back->second);
    tcp_[back->second].pair_with(id);
  }
}

ReverseStream Network::state_of_reverse(ConnectionId reverse) const {
  const Connection& stream = connections_[reverse];
  const double sent_before = tcp_[reverse].bytes_sent();
  if (!stream.flowing) {
    return {.sent = sent_before, .bytes_per_s = stream.rate};
  }
  const SimTime since = queue_.now() - stream.since;
  const double passed =
      stream.rate < kUnlimited ? std::min(stream.rate * to_seconds(since), stream.remaining) : 0.0;
  const double sent = sent_before + passed;
  const double offered = std::min(stream.remaining, tcp_[reverse].window().allowance());
  return {.sent = sent,
          .queued = std::max(0.0, offered - (sent - sent_before)),
          .bytes_per_s = stream.rate,
          .flowing = true};
}

void Network::pause(ConnectionId id) {
  stop(id);
  queue_.push({.time = std::max(next_turn(id), queue_.now()),
               .subject = id,
               .version = ++connections_[id].version,
               .kind = window_turns});
}

SimTime Network::next_turn(ConnectionId id) const {
  const SimTime end = tcp_[id].window().round_end();
  // A window that never turns does not turn a little before either.
  return tcp_[id].acknowledgements().returning() || end == kNever ? end : end - latency_back(id);
}

void Network::turn_window(ConnectionId id) {
  Connection& connection = connections_[id];
  TcpStream& stream = tcp_[id];
  if (connection.flowing) {
    advance(id);
  }
  if (queue_.now() < next_turn(id)) {
    pause(id);
    return;
  }
  if (!stream.acknowledgements().returning()) {
    await_acknowledgement(id);
    return;
  }
  CongestionWindow& window = stream.window();
  const double rate = connection.flowing ? connection.rate : kUnlimited;
  SimTime span = round_trip(id);
  if (!stream.reverse()) {
    window.next_round(queue_.now(), span, rate, connection.remaining);
  } else {
    // The window limits again when acknowledgements queue: it stays in force. Looking at it twice a
    // window is enough.
    span = std::max(span, from_seconds(window.window() / (2 * rate)));
    window.next_round(queue_.now(), span, kUnlimited, connection.remaining);
  }
  stream.start_round();
  if (connection.flowing) {
    schedule(id);
  } else {
    flow(id);
  }
}

void Network::await_acknowledgement(ConnectionId id) {
  TcpStream& stream = tcp_[id];
  const SimTime wait =
      stream.acknowledgements().advance(state_of_reverse(*stream.reverse()), round_trip(id));
  stream.window().hold(plus(plus(queue_.now(), wait), latency_back(id)));
  if (connections_[id].flowing) {
    schedule(id);
  } else {
    pause(id);
  }
}

void Network::notify_back(ConnectionId id) {
  if (const auto back = slow_start() ? tcp_[id].reverse() : std::nullopt;
      back && stream_of(*back) != nullptr) {
    write(*back, 0, true);
  }
}

}  // namespace sotto
