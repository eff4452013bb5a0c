#include "lifecycle.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace sotto {
namespace {

constexpr const char* kStranded = "it stands still, and nothing is left that could wake it";

}  // namespace

void Lifecycle::begin_availability() {
  for (std::size_t i = 0; i < state_.nodes.size(); ++i) {
    if (const auto rank = static_cast<Rank>(i); presence_.has(rank)) {
      state_.nodes[i].away = presence_.away(rank);
      settle(rank);
      schedule_turn(rank);
    }
  }
}

void Lifecycle::schedule_turn(Rank rank) {
  if (const SimTime next = presence_.next(rank); next != kNever) {
    state_.queue.push({.time = next,
                       .subject = static_cast<std::uint32_t>(rank),
                       .kind = SimulationState::node_turns});
    ++turn_events_;
  }
}

bool Lifecycle::turn(Rank rank) {
  --turn_events_;
  if (state_.at(rank).ended()) {
    return false;
  }
  presence_.turn(rank);
  state_.at(rank).away = presence_.away(rank);
  return true;
}

bool Lifecycle::settle(Rank rank) {
  if (state_.at(rank).held || state_.at(rank).away) {
    suspend(rank);
    return false;
  }
  return resume(rank);
}

bool Lifecycle::anything_moves() const {
  for (std::size_t rank = 0; rank < state_.nodes.size(); ++rank) {
    const SimulatedNode& node = state_.nodes[rank];
    // A suspended node's events are due once something wakes it; here only its availability can.
    const bool wakes = !node.suspended || (!node.held && turns_later(rank));
    if (!node.ended() && wakes && node.waits()) {
      return true;
    }
  }
  return state_.network->will_move();
}

void Lifecycle::suspend(Rank rank) {
  SimulatedNode& node = state_.at(rank);
  if (node.suspended) {
    return;
  }
  accounts_.account(rank);
  node.suspended = true;
  node.stood_since = state_.now();
  --awake_;
  for (SimTime& due : node.due) {
    due -= due == kNever ? 0 : state_.now();
  }
}

bool Lifecycle::resume(Rank rank) {
  SimulatedNode& node = state_.at(rank);
  if (!node.suspended) {
    return false;
  }
  accounts_.account(rank);
  node.suspended = false;
  ++awake_;
  // The node's clock stood still meanwhile: a new timeout with each day would never be over.
  node.heard += state_.now() - node.stood_since;
  for (std::uint32_t timer = 0; timer < SimulatedNode::kTimers; ++timer) {
    if (const SimTime left = node.due[timer]; left != kNever) {
      state_.schedule(rank, static_cast<SimulatedNode::Timer>(timer), left);
    }
  }
  return true;
}

void Lifecycle::end(Rank rank, Status status, Closing closing) {
  SimulatedNode& node = state_.at(rank);
  accounts_.account(rank);
  if (!status.ok()) {
    status = status.with_context(fmt::format("node {}, round {}", rank, node.rounds));
  }
  accounts_.record(TraceEntry::Kind::ended, rank, -1, status.ok() ? 0 : 1);
  if (node.stage == Stage::absent) {
    node.start = state_.now();  // it never was there
  }
  if (state_.gradients && (node.stage == Stage::computing || node.stage == Stage::gradient_taken)) {
    state_.gradients->forget(rank);
  }
  if (!status.ok()) {
    accounts_.note_fault(rank, std::move(status));
  }
  node.end = state_.now();
  node.stage = Stage::ended;
  awake_ -= node.suspended ? 0 : 1;
  if (closing != Closing::close) {
    for (const ConnectionId connection : state_.connections().leaving(rank)) {
      accounts_.account(state_.connections().to(connection));
    }
    state_.transport->abort(rank);
  }
  state_.transport->close(rank);
  accounts_.end_node(node.rounds);
  if (closing != Closing::none) {
    tell_peers(rank);
  }
}

void Lifecycle::tell_peers(Rank rank) {
  for (const ConnectionId connection : state_.connections().leaving(rank)) {
    if (state_.network->passable(connection)) {
      schedule_gone(connection, state_.network->latency(connection));
    }
  }
  for (const ConnectionId connection : state_.connections().entering(rank)) {
    if (state_.network->passable_back(connection)) {
      state_.queue.push({.time = plus(state_.now(), state_.network->latency_back(connection)),
                         .subject = connection,
                         .kind = SimulationState::receiver_gone});
    }
  }
}

void Lifecycle::schedule_gone(ConnectionId connection, SimTime after) {
  state_.queue.push({.time = plus(state_.now(), after),
                     .subject = connection,
                     .kind = SimulationState::sender_gone});
}

void Lifecycle::handle_gone(const Event& event) {
  const ConnectionId connection = event.subject;
  const bool sender = event.kind == SimulationState::sender_gone;
  if (sender && !state_.transport->drained(connection)) {
    return;  // its last bytes come first
  }
  const Rank gone =
      sender ? state_.connections().from(connection) : state_.connections().to(connection);
  const Rank rank =
      sender ? state_.connections().to(connection) : state_.connections().from(connection);
  const bool needed = sender ? state_.transport->lose_sender(connection)
                             : state_.transport->lose_receiver(connection);
  if (needed && !state_.at(rank).ended()) {
    end(rank, {Fault::peer_lost, fmt::format("node {} is lost", gone)});
  }
}

void Lifecycle::end_all_left() {
  const std::string beyond = beyond_time();
  for (std::size_t i = 0; i < state_.nodes.size(); ++i) {
    const SimulatedNode& node = state_.nodes[i];
    if (!node.ended()) {
      end(static_cast<Rank>(i),
          {Fault::deadline, node.suspended || beyond.empty() ? kStranded : beyond});
    }
  }
}

std::string Lifecycle::beyond_time() const {
  if (state_.queue.size() != steps_queued()) {
    return "";  // all that are left are suspended
  }
  const std::string ends = fmt::format("virtual time ends after {:.0f} years, and ",
                                       to_seconds(kNever) / (365.25 * 24 * 3600));
  for (std::size_t rank = 0; rank < state_.nodes.size(); ++rank) {
    const SimulatedNode& node = state_.nodes[rank];
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
    if (node.codec != SimulatedNode::Codec::idle) {
      return ends + fmt::format(
                        "node {} would encode or decode for longer in round {}; take a "
                        "faster codec, or run fewer rounds",
                        rank, node.rounds);
    }
  }
  if (const auto connection = state_.network->moving()) {
    return ends + fmt::format(
                      "a message from node {} to node {} would arrive later; give the links "
                      "more bandwidth or less latency, or run fewer rounds",
                      state_.connections().from(*connection), state_.connections().to(*connection));
  }
  return "";
}

bool Lifecycle::stranded() {
  if (state_.queue.next_time() <= state_.now()) {
    return false;
  }
  for (std::size_t rank = 0; rank < state_.nodes.size(); ++rank) {
    if (!state_.nodes[rank].ended() && !state_.nodes[rank].held && turns_later(rank)) {
      return false;
    }
  }
  return std::none_of(state_.options.events.begin(), state_.options.events.end(),
                      [this](const NodeEvent& e) {
                        const bool wakes_or_ends = e.kind == NodeEvent::Kind::resume ||
                                                   e.kind == NodeEvent::Kind::crash ||
                                                   e.kind == NodeEvent::Kind::vanish;
                        return wakes_or_ends && e.at > state_.now() &&
                               !state_.nodes[static_cast<std::size_t>(e.node)].ended();
                      });
}

}  // namespace sotto
