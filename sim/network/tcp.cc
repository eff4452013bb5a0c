// TCP in Network: windows that turn, acknowledgements that wait in the queue of the data that goes
// their way, and losses.
#include <sotto/sim/network/network.h>

#include <algorithm>

namespace sotto {
namespace {

/// Added to the receiver's rank, it keys what a connection loses apart from its jitter: a rank is
/// below it.
constexpr std::uint32_t kLosses = 1U << 23U;

}  // namespace

void Network::find_reverse(ConnectionId id) {
  if (!slow_start() || model_.packet_bytes == 0) {
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
  if (!stream.reverse() && stream.repair() == nullptr) {
    window.next_round(queue_.now(), span, rate, connection.remaining);
  } else {
    // The window limits again when acknowledgements queue, and after a loss: it stays in force.
    // Looking at it twice a window is enough.
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

void Network::expect_losses(ConnectionId id) {
  const Connection& connection = connections_[id];
  const double kept = links_.chance_of_passing(links(connection.path));
  if (kept < 1 && slow_start()) {
    const auto receiver = static_cast<std::uint32_t>(connection.to);
    tcp_[id].lose_packets(LossRepair(1 - kept,
                                     RandomKey{.seed = seed_,
                                               .rank = connection.from,
                                               .round = id,
                                               .purpose = Purpose::jitter,
                                               .bucket = kLosses + receiver},
                                     model_.segment_bytes));
  }
}

SimTime Network::hears_after(ConnectionId id) const {
  const auto reverse = tcp_[id].reverse();
  return plus(round_trip(id), reverse ? queueing_time(state_of_reverse(*reverse)) : 0);
}

void Network::choose_loss(ConnectionId id) {
  const Connection& connection = connections_[id];
  if (LossRepair* const repair = repair_of(id)) {
    repair->begin(connection.bytes);
    if (!connection.flowing) {
      report_loss(id);
    }
  }
}

void Network::notify_back(ConnectionId id) {
  const auto back = slow_start() ? tcp_[id].reverse() : std::nullopt;
  if (back && !connections_[*back].flowing) {
    report_loss(*back);
  }
}

bool Network::await_repair(ConnectionId id) {
  Connection& connection = connections_[id];
  const LossRepair* const repair = repair_of(id);
  if (repair == nullptr) {
    return false;
  }
  const SimTime begins = repair->may_begin(queue_.now(), round_trip(id));
  if (begins == queue_.now()) {
    return false;
  }
  queue_.push(
      {.time = begins, .subject = id, .version = ++connection.version, .kind = message_begins});
  return true;
}

void Network::lose(ConnectionId id) {
  Connection& connection = connections_[id];
  TcpStream& stream = tcp_[id];
  stream.window().lose();
  const SenderState sender = {.now = queue_.now(),
                              .hears_after = hears_after(id),
                              .bytes_per_s = connection.rate,
                              .another_waits = !connection.waiting.empty()};
  const LossCost cost = stream.repair()->lose(sender, stream.window());
  connection.remaining += cost.bytes_again;
  stream.window().time_out(cost.times_out_at);
}

void Network::report_loss(ConnectionId id) {
  Connection& connection = connections_[id];
  LossRepair* const repair = repair_of(id);
  if (repair == nullptr) {
    return;
  }
  const SimTime was_whole_at = repair->whole_at();
  const SimTime sooner = repair->report(queue_.now(), hears_after(id));
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
