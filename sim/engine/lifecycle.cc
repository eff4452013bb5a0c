// The engine's part about what happens to nodes: they end, stand still, and learn of each other's
// end.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "engine.h"

namespace sotto {
namespace {

constexpr const char* kStranded = "it stands still, and nothing is left that could wake it";

}  // namespace

void Simulator::Engine::handle_node_event(const NodeEvent& event) {
  const Rank rank = event.node;
  Node& node = at(rank);
  if (node.ended()) {
    return;
  }
  switch (event.kind) {
    case NodeEvent::Kind::crash:
      end(rank, {Fault::io, "it crashed"}, Closing::reset);
      break;
    case NodeEvent::Kind::vanish:
      end(rank, {Fault::io, "it vanished"}, Closing::none);
      break;
    case NodeEvent::Kind::leave:
      node.leaving = true;
      advance(rank);
      break;
    case NodeEvent::Kind::suspend:
    case NodeEvent::Kind::resume:
      node.held = event.kind == NodeEvent::Kind::suspend;
      settle_presence(rank);
      break;
  }
}

void Simulator::Engine::settle_presence(Rank rank) {
  const Node& node = at(rank);
  if (node.held || node.away) {
    suspend(rank);
  } else {
    resume(rank);
  }
}

void Simulator::Engine::begin_availability() {
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    if (const auto rank = static_cast<Rank>(i); presence_->has(rank)) {
      nodes_[i].away = presence_->away(rank);
      settle_presence(rank);
      schedule_turn(rank);
    }
  }
}

void Simulator::Engine::schedule_turn(Rank rank) {
  if (const SimTime next = presence_->next(rank); next != kNever) {
    queue_.push({.time = next, .subject = static_cast<std::uint32_t>(rank), .kind = node_turns});
    ++turn_events_;
  }
}

void Simulator::Engine::turn(Rank rank) {
  --turn_events_;
  if (at(rank).ended()) {
    return;
  }
  presence_->turn(rank);
  at(rank).away = presence_->away(rank);
  settle_presence(rank);
  schedule_turn(rank);
}

bool Simulator::Engine::only_steps_left() const {
  for (std::size_t rank = 0; rank < nodes_.size(); ++rank) {
    const Node& node = nodes_[rank];
    // A suspended node's events are due once something wakes it; here only its availability can.
    const bool wakes = !node.suspended || (!node.held && turns_later(rank));
    if (!node.ended() && wakes && node.waits()) {
      return false;
    }
  }
  return !network_->will_move();
}

void Simulator::Engine::suspend(Rank rank) {
  Node& node = at(rank);
  if (node.suspended) {
    return;
  }
  account(rank);
  node.suspended = true;
  node.stood_since = now();
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
  // The node's clock stood still meanwhile: a new timeout with each day would never be over.
  node.heard += now() - node.stood_since;
  for (std::uint32_t timer = 0; timer < Node::kTimers; ++timer) {
    if (const SimTime left = node.due[timer]; left != kNever) {
      schedule(rank, static_cast<Timer>(timer), left);
    }
  }
  for (const ConnectionId connection : connections().leaving(rank)) {
    launch(connection);
  }
  advance(rank);
}

void Simulator::Engine::end(Rank rank, Status status, Closing closing) {
  Node& node = at(rank);
  account(rank);
  if (!status.ok()) {
    status = status.with_context(fmt::format("node {}, round {}", rank, node.rounds));
  }
  record(TraceEntry::Kind::ended, rank, -1, status.ok() ? 0 : 1);
  if (node.stage == Stage::absent) {
    node.start = now();  // it never was there
  }
  if (gradients_ && (node.stage == Stage::computing || node.stage == Stage::gradient_taken)) {
    gradients_->forget(rank);
  }
  if (!status.ok()) {
    faults_[rank] = std::move(status);
  }
  node.end = now();
  node.stage = Stage::ended;
  --alive_;
  awake_ -= node.suspended ? 0 : 1;
  if (closing != Closing::close) {
    for (const ConnectionId connection : connections().leaving(rank)) {
      account(connections().to(connection));
    }
    transport_->abort(rank);
  }
  transport_->close(rank);
  round_counts_.remove(node.rounds);
  tell_rounds_of_all();
  if (closing == Closing::none) {
    return;
  }
  for (const ConnectionId connection : connections().leaving(rank)) {
    if (network_->passable(connection)) {
      schedule_gone(connection, network_->latency(connection));
    }
  }
  for (const ConnectionId connection : connections().entering(rank)) {
    if (network_->passable_back(connection)) {
      queue_.push({.time = plus(now(), network_->latency_back(connection)),
                   .subject = connection,
                   .kind = receiver_gone});
    }
  }
}

void Simulator::Engine::schedule_gone(ConnectionId connection, SimTime after) {
  queue_.push({.time = plus(now(), after), .subject = connection, .kind = sender_gone});
}

void Simulator::Engine::handle_gone(const Event& event) {
  const ConnectionId connection = event.subject;
  const bool sender = event.kind == sender_gone;
  if (sender && !transport_->drained(connection)) {
    return;  // its last bytes come first
  }
  const Rank gone = sender ? connections().from(connection) : connections().to(connection);
  const Rank rank = sender ? connections().to(connection) : connections().from(connection);
  const bool needed =
      sender ? transport_->lose_sender(connection) : transport_->lose_receiver(connection);
  if (needed && !at(rank).ended()) {
    end(rank, {Fault::peer_lost, fmt::format("node {} is lost", gone)});
  }
}

void Simulator::Engine::end_all_left() {
  const std::string beyond = beyond_time();
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    const Node& node = nodes_[i];
    if (!node.ended()) {
      end(static_cast<Rank>(i),
          {Fault::deadline, node.suspended || beyond.empty() ? kStranded : beyond});
    }
  }
}

std::string Simulator::Engine::beyond_time() const {
  if (queue_.size() != steps_queued()) {
    return "";  // all that are left are suspended
  }
  const std::string ends = fmt::format("virtual time ends after {:.0f} years, and ",
                                       to_seconds(kNever) / (365.25 * 24 * 3600));
  for (std::size_t rank = 0; rank < nodes_.size(); ++rank) {
    const Node& node = nodes_[rank];
    if (node.suspended || node.ended()) {
      continue;
    }
    if (node.stage == Stage::absent) {
      return ends + fmt::format("node {} would start later", rank);
    }
    if (node.stage == Stage::computing) {
      return ends + fmt::format(
                        "the gradient of node {} in round {} would take longer; shorten the "
                        "gradients' times, or run fewer rounds",
                        rank, node.rounds);
    }
    if (node.codec != Codec::idle) {
      return ends + fmt::format(
                        "node {} would encode or decode for longer in round {}; take a "
                        "faster codec, or run fewer rounds",
                        rank, node.rounds);
    }
  }
  if (const auto connection = network_->moving()) {
    return ends + fmt::format(
                      "a message from node {} to node {} would arrive later; give the links "
                      "more bandwidth or less latency, or run fewer rounds",
                      connections().from(*connection), connections().to(*connection));
  }
  return "";
}

bool Simulator::Engine::stranded() {
  if (queue_.next_time() <= now()) {
    return false;
  }
  for (std::size_t rank = 0; rank < nodes_.size(); ++rank) {
    if (!nodes_[rank].ended() && !nodes_[rank].held && turns_later(rank)) {
      return false;
    }
  }
  return std::none_of(options_.events.begin(), options_.events.end(), [this](const NodeEvent& e) {
    const bool wakes_or_ends = e.kind == NodeEvent::Kind::resume ||
                               e.kind == NodeEvent::Kind::crash ||
                               e.kind == NodeEvent::Kind::vanish;
    return wakes_or_ends && e.at > now() && !nodes_[static_cast<std::size_t>(e.node)].ended();
  });
}

}  // namespace sotto
