// The engine's part about what happens to nodes: they end, stand still, and learn of each other's
// end.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "engine.h"

namespace sotto {

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
  --awake_;
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
  ++awake_;
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
  if (node.stage == Stage::absent) {
    node.report.start = now();  // it never was there
  }
  node.report.status = std::move(status);
  node.report.end = now();
  node.stage = Stage::ended;
  --alive_;
  awake_ -= node.suspended ? 0 : 1;
  if (farewell != Farewell::close) {
    for (const ConnectionId line : courier_.lines_from(rank)) {
      account(courier_.to(line));
    }
    courier_.abort(rank);
  }
  courier_.close(rank);
  count_round(node.report.rounds, false);
  if (farewell == Farewell::none) {
    return;
  }
  for (const ConnectionId line : courier_.lines_from(rank)) {
    if (network_.passable(line)) {
      schedule_gone(line, network_.latency(line));
    }
  }
  for (const ConnectionId line : courier_.lines_to(rank)) {
    if (network_.passable_back(line)) {
      queue_.push({.time = later(now(), network_.latency_back(line)),
                   .subject = line,
                   .kind = receiver_gone});
    }
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

bool Simulator::Engine::stranded() {
  if (queue_.next_time() <= now()) {
    return false;
  }
  return std::none_of(options_.events.begin(), options_.events.end(), [this](const NodeEvent& e) {
    const bool wakes_or_ends = e.kind == NodeEvent::Kind::resume ||
                               e.kind == NodeEvent::Kind::crash ||
                               e.kind == NodeEvent::Kind::vanish;
    return wakes_or_ends && e.at > now() &&
           nodes_[static_cast<std::size_t>(e.node)].stage != Stage::ended;
  });
}

}  // namespace sotto
