// The engine's other half: exchanges, and what happens to nodes.
#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <sotto/base/check.h>

#include "engine.h"

namespace sotto {

void Simulator::Engine::post(Rank rank) {
  Node& node = at(rank);
  if (const Rank lost = courier_.lost_peer(rank, node.exchange); lost >= 0) {
    end(rank, {Fault::peer_lost, fmt::format("node {} is lost", lost)});
    return;
  }
  account(rank);
  for (const Send& send : node.exchange.sends) {
    account(send.to);
    record(TraceEntry::Kind::sent, rank, send.to, send.frame.size());
  }
  released_.clear();
  courier_.post(rank, node.exchange, &released_);
  if (options_.transport.on_demand) {
    for (const Receive& receive : node.exchange.receives) {
      const ConnectionId line = courier_.line(receive.from, rank);
      queue_.push(
          {.time = later(now(), network_.latency_back(line)), .subject = line, .kind = awaited});
    }
  }
  node.heard = now();
  if (!node.deadline_due) {
    node.deadline_due = true;
    schedule(rank, deadline, options_.timeout);
  }
  complete(rank);
  for (const Rank sender : released_) {
    complete(sender);
  }
}

void Simulator::Engine::complete(Rank rank) {
  Node& node = at(rank);
  if (node.stage == Stage::ended || node.carried_due || !courier_.complete(rank)) {
    return;
  }
  double bytes = 0;
  for (const std::uint32_t size : courier_.received(rank)) {
    bytes += size;
  }
  const SimTime time = from_seconds(bytes * spec(rank).codec.decode_s_per_byte);
  account(rank);
  node.carried_due = true;
  node.coding_aside = time > 0;
  schedule(rank, carried, time);
}

void Simulator::Engine::carried_exchange(Rank rank) {
  Node& node = at(rank);
  Algorithm& algorithm = *node.algorithm;
  node.carried_due = node.coding_aside = node.carrying = false;
  const auto sizes = courier_.received(rank);
  const auto& receives = node.exchange.receives;
  for (std::size_t i = 0; i < receives.size(); ++i) {
    Status status = algorithm.frame_arrived(receives[i].from, receives[i].buffer.first(sizes[i]));
    if (!status) {
      end(rank, std::move(status));
      return;
    }
  }
  courier_.close(rank);
  const auto more = algorithm.exchange_done(scratch_);
  if (!more) {
    end(rank, more.status());
    return;
  }
  if (!*more) {
    return;
  }
  std::swap(node.exchange, scratch_);
  node.carrying = true;
  if (const SimTime time = encode_time(rank); time > 0) {
    node.coding_aside = true;
    schedule(rank, posted, time);
  } else {
    post(rank);
  }
}

void Simulator::Engine::handle_arrival(const Arrival& arrival) {
  const Rank from = courier_.from(arrival.connection);
  const Rank to = courier_.to(arrival.connection);
  ++messages_;
  account(from);
  account(to);
  record(TraceEntry::Kind::delivered, to, from, arrival.bytes);
  const auto effects = courier_.deliver(arrival);
  const Round ahead = at(from).algorithm->round();
  const Round behind = at(to).algorithm->round();
  largest_lead_ = std::max(largest_lead_, ahead > behind ? ahead - behind : 0);
  if (effects.delivered) {
    at(to).heard = now();
  }
  if (effects.receiver_done) {
    complete(to);
  }
  if (effects.sender_done) {
    complete(from);
  }
  // What the last bytes of a node that is gone were waited for.
  if (at(from).stage == Stage::ended && courier_.drained(arrival.connection)) {
    schedule_gone(arrival.connection, 0);
  }
}

void Simulator::Engine::schedule_gone(ConnectionId line, SimTime after) {
  queue_.push({.time = later(now(), after), .subject = line, .kind = sender_gone});
}

void Simulator::Engine::handle_gone(const Event& event) {
  const ConnectionId line = event.subject;
  const bool sender = event.kind == sender_gone;
  if (sender && !courier_.drained(line)) {
    return;  // its last bytes come first
  }
  const Rank gone = sender ? courier_.from(line) : courier_.to(line);
  const Rank rank = sender ? courier_.to(line) : courier_.from(line);
  const bool needed = sender ? courier_.lose_sender(line) : courier_.lose_receiver(line);
  if (needed && at(rank).stage != Stage::ended) {
    end(rank, {Fault::peer_lost, fmt::format("node {} is lost", gone)});
  }
}

void Simulator::Engine::handle_awaited(ConnectionId line) {
  const Rank from = courier_.from(line);
  courier_.demand(line);
  if (at(from).stage != Stage::ended && !at(from).suspended) {
    launch(line);
  }
}

void Simulator::Engine::launch(ConnectionId line) {
  account(courier_.from(line));
  account(courier_.to(line));
  courier_.launch(line);
  complete(courier_.from(line));
}

void Simulator::Engine::check_deadline(Rank rank) {
  Node& node = at(rank);
  node.deadline_due = false;
  if (!courier_.open(rank) || node.carried_due) {
    return;
  }
  const SimTime due = later(node.heard, options_.timeout);
  if (due <= now()) {
    end(rank, {Fault::deadline,
               fmt::format("nothing was heard for {} s from node {}", to_seconds(options_.timeout),
                           fmt::join(courier_.awaited(rank), ", "))});
    return;
  }
  node.deadline_due = true;
  schedule(rank, deadline, due - now());
}

void Simulator::Engine::handle_node_event(const NodeEvent& event) {
  const Rank rank = event.node;
  Node& node = at(rank);
  if (node.stage == Stage::ended) {
    return;
  }
  switch (event.kind) {
    case NodeEvent::Kind::crash:
      end(rank, {Fault::io, "it crashed"}, Farewell::reset);
      break;
    case NodeEvent::Kind::vanish:
      end(rank, {Fault::io, "it vanished"}, Farewell::none);
      break;
    case NodeEvent::Kind::leave:
      node.leaving = true;
      advance(rank);
      break;
    case NodeEvent::Kind::suspend:
      suspend(rank);
      break;
    case NodeEvent::Kind::resume:
      resume(rank);
      break;
  }
}

void Simulator::Engine::suspend(Rank rank) {
  Node& node = at(rank);
  if (node.suspended) {
    return;
  }
  account(rank);
  node.suspended = true;
  for (SimTime& due : node.due) {
    due -= due == kNever ? 0 : now();
  }
}

void Simulator::Engine::resume(Rank rank) {
  Node& node = at(rank);
  if (!node.suspended) {
    return;
  }
  account(rank);
  node.suspended = false;
  node.heard = now();
  for (std::uint32_t kind = node_starts; kind < node_event; ++kind) {
    if (const SimTime left = due(rank, kind); left != kNever) {
      schedule(rank, kind, left);
    }
  }
  for (const ConnectionId line : courier_.lines_from(rank)) {
    launch(line);
  }
  advance(rank);
}

void Simulator::Engine::end(Rank rank, Status status, Farewell farewell) {
  Node& node = at(rank);
  account(rank);
  if (!status.ok()) {
    status = status.with_context(fmt::format("node {}, round {}", rank, node.report.rounds));
  }
  record(TraceEntry::Kind::ended, rank, -1, status.ok() ? 0 : 1);
  node.report.status = std::move(status);
  node.report.end = now();
  node.stage = Stage::ended;
  --alive_;
  if (farewell != Farewell::close) {
    for (const ConnectionId line : courier_.lines_from(rank)) {
      account(courier_.to(line));
    }
    courier_.abort(rank);
  }
  courier_.close(rank);
  count_round(node.report.rounds, std::nullopt);
  if (farewell == Farewell::none) {
    return;
  }
  for (const ConnectionId line : courier_.lines_from(rank)) {
    if (network_.passable(line)) {
      schedule_gone(line, network_.latency(line));
    }
  }
  for (const ConnectionId line : courier_.lines_to(rank)) {
    if (network_.passable(line)) {
      queue_.push(
          {.time = later(now(), network_.latency(line)), .subject = line, .kind = receiver_gone});
    }
  }
}

}  // namespace sotto
