// What the fluid of Network owes to packets: turns on links, and windows whose acknowledgements
// wait in the queue of the data that goes their way.
#include <algorithm>
#include <cmath>

#include <sotto/sim/network/network.h>

namespace sotto {

void Network::count_flow(const Connection& connection, bool flows) {
  if (model_.packet_bytes == 0) {
    return;
  }
  for (const LinkId id : links(connection.path)) {
    LinkState& link = links_[id];
    flows ? ++link.flows : --link.flows;
  }
}

// A link that takes turns serves k flows of a rate C / k packet by packet (deficit round robin), so
// that a packet which comes at any time finds half a packet of each other flow in front of it:
// (k − 1) / 2 × packet / C. Where the flow is narrowest that wait is its share of the fluid.
SimTime Network::queueing_delay_of(const Connection& connection) const {
  double all = 0;
  double longest = 0;
  for (const LinkId id : links(connection.path)) {
    const LinkState& link = links_[id];
    if (link.flows > 1 && link.bytes_per_s > 0) {
      const double wait = (link.flows - 1) * model_.packet_bytes / (2 * link.bytes_per_s);
      all += wait;
      longest = std::max(longest, wait);
    }
  }
  return from_seconds(all - longest);
}

void Network::find_reverse(ConnectionId id) {
  if (!slow_start() || model_.packet_bytes == 0) {
    return;
  }
  Connection& connection = connections_[id];
  by_ends_.try_emplace({connection.from, connection.to}, id);
  if (const auto back = by_ends_.find({connection.to, connection.from}); back != by_ends_.end()) {
    connection.reverse = back->second;
    connections_[back->second].reverse = id;
  }
}

void Network::pause(ConnectionId id) {
  stop(id);
  queue_.push({.time = std::max(next_turn(id), queue_.now()),
               .subject = id,
               .version = ++connections_[id].version,
               .kind = window_turns});
}

SimTime Network::next_turn(ConnectionId id) const {
  const SimTime end = windows_[id].round_end();
  // A window that never turns does not turn a little before either.
  return connections_[id].ack == Ack::returns || end == kNever ? end : end - latency_back(id);
}

void Network::start_round(ConnectionId id) {
  Connection& connection = connections_[id];
  connection.ack = connection.reverse == kNone ? Ack::returns : Ack::travels;
}

void Network::turn_window(ConnectionId id) {
  Connection& connection = connections_[id];
  CongestionWindow& window = windows_[id];
  if (connection.flowing) {
    advance(id);
  }
  if (queue_.now() < next_turn(id)) {
    pause(id);
    return;
  }
  if (connection.ack != Ack::returns) {
    await_ack(id);
    return;
  }
  const double rate = connection.flowing ? connection.rate : kUnlimited;
  SimTime span = round_trip(connection);
  if (connection.reverse == kNone && connection.lossy == kNone) {
    window.next_round(queue_.now(), span, rate, connection.remaining);
  } else {
    // The window limits again when acknowledgements queue, and after a loss: it stays in force.
    // Looking at it twice a window is enough.
    span = std::max(span, from_seconds(window.window() / (2 * rate)));
    window.next_round(queue_.now(), span, kUnlimited, connection.remaining);
  }
  start_round(id);
  if (connection.flowing) {
    schedule(id);
  } else {
    flow(id);
  }
}

// Acknowledgements have no queue of their own: they follow what the window let into the queue
// before them.
void Network::await_ack(ConnectionId id) {
  Connection& connection = connections_[id];
  const Connection& reverse = connections_[connection.reverse];
  if (connection.ack == Ack::travels) {
    connection.ack = Ack::queues;
    connection.ack_after = sent_by_now(reverse) + queued(connection.reverse);
  }
  const double ahead = connection.ack_after - sent_by_now(reverse);
  SimTime wait = 0;
  if (!reverse.flowing || ahead < 0.5) {
    connection.ack = Ack::returns;
  } else if (reverse.rate > 0) {
    wait = from_seconds(std::ceil(1e9 * ahead / reverse.rate) * 1e-9);
  } else {
    wait = std::max<SimTime>(round_trip(connection), 1'000'000);
  }
  windows_[id].hold(plus(plus(queue_.now(), wait), latency_back(id)));
  if (connection.flowing) {
    schedule(id);
  } else {
    pause(id);
  }
}

double Network::sent_by_now(const Connection& connection) const {
  const SimTime since = queue_.now() - connection.since;
  return connection.bytes_sent +
         (connection.flowing && connection.rate < kUnlimited
              ? std::min(connection.rate * to_seconds(since), connection.remaining)
              : 0.0);
}

double Network::queued(ConnectionId id) const {
  const Connection& connection = connections_[id];
  if (!connection.flowing) {
    return 0;
  }
  const double passed = sent_by_now(connection) - connection.bytes_sent;
  return std::max(0.0, std::min(connection.remaining, windows_[id].allowance()) - passed);
}

}  // namespace sotto
