// TCP in Network: windows that turn, acknowledgements that wait in the queue of the data that goes
// their way, and losses.
#include <sotto/sim/network/network.h>

#include <algorithm>

namespace sotto {
namespace {

/// Buckets of the jitter, whose receivers are below it.
constexpr std::uint32_t kLosses = 1U << 23U;

}  // namespace

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

ReverseStream Network::reverse_stream(const Connection& connection) const {
  const Connection& reverse = connections_[connection.reverse];
  if (!reverse.flowing) {
    return {.sent = reverse.bytes_sent, .bytes_per_s = reverse.rate};
  }
  const SimTime since = queue_.now() - reverse.since;
  const double passed = reverse.rate < kUnlimited
                            ? std::min(reverse.rate * to_seconds(since), reverse.remaining)
                            : 0.0;
  const double sent = reverse.bytes_sent + passed;
  const double offered = std::min(reverse.remaining, windows_[connection.reverse].allowance());
  return {.sent = sent,
          .queued = std::max(0.0, offered - (sent - reverse.bytes_sent)),
          .bytes_per_s = reverse.rate,
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
  const SimTime end = windows_[id].round_end();
  // A window that never turns does not turn a little before either.
  return connections_[id].acknowledgements.returning() || end == kNever ? end
                                                                        : end - latency_back(id);
}

void Network::start_round(ConnectionId id) {
  Connection& connection = connections_[id];
  connection.acknowledgements.start_round(connection.reverse != kNone);
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
  if (!connection.acknowledgements.returning()) {
    await_acknowledgement(id);
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

void Network::await_acknowledgement(ConnectionId id) {
  Connection& connection = connections_[id];
  const SimTime wait =
      connection.acknowledgements.advance(reverse_stream(connection), round_trip(connection));
  windows_[id].hold(plus(plus(queue_.now(), wait), latency_back(id)));
  if (connection.flowing) {
    schedule(id);
  } else {
    pause(id);
  }
}

void Network::expect_losses(ConnectionId id) {
  Connection& connection = connections_[id];
  const double kept = links_.chance_of_passing(links(connection.path));
  if (kept < 1 && slow_start()) {
    const auto receiver = static_cast<std::uint32_t>(connection.to);
    connection.lossy = static_cast<std::uint32_t>(repairs_.size());
    repairs_.emplace_back(1 - kept,
                          RandomKey{.seed = seed_,
                                    .rank = connection.from,
                                    .round = id,
                                    .purpose = Purpose::jitter,
                                    .bucket = kLosses + receiver},
                          model_.segment_bytes);
  }
}

SimTime Network::hears_after(const Connection& connection) const {
  const SimTime queueing =
      connection.reverse == kNone ? 0 : queueing_time(reverse_stream(connection));
  return plus(round_trip(connection), queueing);
}

void Network::choose_loss(ConnectionId id) {
  const Connection& connection = connections_[id];
  if (LossRepair* const repair = repair_of(connection)) {
    repair->begin(connection.bytes);
    if (!connection.flowing) {
      report_loss(id);
    }
  }
}

void Network::notify_back(ConnectionId id) {
  const ConnectionId back = connections_[id].reverse;
  if (back != kNone && !connections_[back].flowing) {
    report_loss(back);
  }
}

bool Network::await_repair(ConnectionId id) {
  Connection& connection = connections_[id];
  const LossRepair* const repair = repair_of(connection);
  if (repair == nullptr) {
    return false;
  }
  const SimTime begins = repair->may_begin(queue_.now(), round_trip(connection));
  if (begins == queue_.now()) {
    return false;
  }
  queue_.push(
      {.time = begins, .subject = id, .version = ++connection.version, .kind = message_begins});
  return true;
}

void Network::lose(ConnectionId id) {
  Connection& connection = connections_[id];
  windows_[id].lose();
  const SenderState sender = {.now = queue_.now(),
                              .hears_after = hears_after(connection),
                              .bytes_per_s = connection.rate,
                              .another_waits = !connection.waiting.empty()};
  const LossCost cost = repair_of(connection)->lose(sender, windows_[id]);
  connection.remaining += cost.bytes_again;
  windows_[id].time_out(cost.times_out_at);
}

void Network::report_loss(ConnectionId id) {
  Connection& connection = connections_[id];
  LossRepair* const repair = repair_of(connection);
  if (repair == nullptr) {
    return;
  }
  const SimTime was_whole_at = repair->whole_at();
  const SimTime sooner = repair->report(queue_.now(), hears_after(connection));
  if (sooner == 0) {
    return;
  }
  for (Landing& landing : connection.landing.items()) {
    if (landing.at >= was_whole_at) {
      landing.at -= sooner;
      queue_.push({.time = landing.at,
                   .subject = id,
                   .version = connection.epoch,
                   .kind = message_arrives});
    }
  }
  connection.last_landing -= sooner;
}

}  // namespace sotto
