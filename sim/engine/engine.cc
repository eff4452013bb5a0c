#include "engine.h"

#include <algorithm>
#include <utility>

#include <sotto/base/check.h>

namespace sotto {

Simulator::Engine::Engine(const Platform& platform, SimulatorOptions options,
                          std::vector<std::unique_ptr<Algorithm>> algorithms,
                          GradientFunction gradient, SimulatorHooks hooks)
    : state_(platform, std::move(options), std::move(algorithms), static_cast<bool>(gradient),
             std::move(hooks)),
      accounts_(state_),
      lives_(state_, accounts_),
      exchanges_(state_, accounts_, lives_) {
  if (state_.options.sampling.clients != nullptr) {
    clients_.emplace(state_.options.sampling, state_.nodes.size(), state_.options.seed, platform,
                     *state_.network);
  }
  connect(platform);
  if (gradient) {
    state_.gradients = std::make_unique<NodeGradients>(
        state_.nodes.size(), state_.options.threads, std::move(gradient),
        [this](Rank rank) -> const Algorithm& { return *state_.at(rank).algorithm; });
  }
}

void Simulator::Engine::connect(const Platform& platform) {
  std::size_t connections = 0;
  for (const Node& node : state_.nodes) {
    connections += node.algorithm->peers().to.size();
  }
  state_.transport->reserve(connections);
  for (std::size_t i = 0; i < state_.nodes.size(); ++i) {
    const auto rank = static_cast<Rank>(i);
    Peers peers = state_.nodes[i].algorithm->peers();
    std::ranges::sort(peers.to);  // an algorithm may list them in any order
    state_.transport->connect(platform, rank, peers.to, peers.frames_ahead(),
                              peers.max_frame_bytes);
    state_.schedule(rank, Timer::starts, state_.spec(rank).start);
  }
  state_.transport->connected();
  for (std::size_t i = 0; i < state_.options.events.size(); ++i) {
    state_.queue.push({.time = state_.options.events[i].at,
                       .subject = static_cast<std::uint32_t>(i),
                       .kind = SimulationState::node_event});
  }
  lives_.begin_availability();
}

SimulationReport Simulator::Engine::run() {
  while (accounts_.nodes_left() > 0 && !accounts_.stopped() &&
         (!lives_.all_stand_still() || !lives_.stranded())) {
    if (state_.network->shares().dirty() && state_.queue.next_time() > state_.now()) {
      state_.network->settle();
    }
    if (state_.queue.empty() || lives_.only_steps_left()) {
      break;
    }
    const Event event = state_.queue.pop();
    accounts_.count_event();
    if (event.kind >= Network::kKinds) {
      handle(event);
    } else if (const auto arrival = state_.network->handle(event)) {
      exchanges_.handle_arrival(*arrival);
    }
  }
  if (!accounts_.stopped()) {
    lives_.end_all_left();
  }
  for (std::size_t i = 0; i < state_.nodes.size(); ++i) {
    if (!state_.nodes[i].ended()) {
      lives_.end(static_cast<Rank>(i), {});
    }
  }
  if (state_.gradients) {
    state_.gradients->drain();
  }
  return accounts_.make_report();
}

void Simulator::Engine::handle(const Event& event) {
  switch (event.kind) {
    case SimulationState::node_event:
      handle_node_event(state_.options.events[event.subject]);
      break;
    case SimulationState::sender_gone:
    case SimulationState::receiver_gone:
      lives_.handle_gone(event);
      break;
    case SimulationState::notice:
      exchanges_.handle_notice(event.subject);
      break;
    case SimulationState::node_turns:
      turn(static_cast<Rank>(event.subject));
      break;
    default:
      handle_timer(event);
  }
}

void Simulator::Engine::handle_timer(const Event& event) {
  const auto rank = static_cast<Rank>(event.subject);
  Node& node = state_.at(rank);
  const auto timer = static_cast<Timer>(event.kind - SimulationState::node_timer);
  SimTime& due_at = node.due[timer];
  if (node.suspended || due_at != event.time || node.ended()) {
    return;
  }
  due_at = kNever;
  accounts_.account(rank);
  switch (timer) {
    case Timer::starts:
      node.stage = Stage::between_rounds;
      node.start = node.accounted = state_.now();
      break;
    case Timer::computed:
      node.stage = Stage::gradient_taken;
      accounts_.record(TraceEntry::Kind::computed, rank);
      break;
    case Timer::coded:
    case Timer::posted:
      exchanges_.take_encoded(rank);
      break;
    case Timer::carried:
      exchanges_.take_carried(rank);
      break;
    case Timer::deadline:
      exchanges_.check_deadline(rank);
      break;
    default:
      check(false, "a node's timer is one of these");
  }
  advance(rank);
}

void Simulator::Engine::handle_node_event(const NodeEvent& event) {
  const Rank rank = event.node;
  Node& node = state_.at(rank);
  if (node.ended()) {
    return;
  }
  switch (event.kind) {
    case NodeEvent::Kind::crash:
      lives_.end(rank, {Fault::io, "it crashed"}, Lifecycle::Closing::reset);
      break;
    case NodeEvent::Kind::vanish:
      lives_.end(rank, {Fault::io, "it vanished"}, Lifecycle::Closing::none);
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
  if (!lives_.settle(rank)) {
    return;
  }
  for (const ConnectionId connection : state_.connections().leaving(rank)) {
    exchanges_.launch(connection);
  }
  advance(rank);
}

void Simulator::Engine::turn(Rank rank) {
  if (lives_.turn(rank)) {
    settle_presence(rank);
    lives_.schedule_turn(rank);
  }
}

void Simulator::Engine::advance(Rank rank) {
  while (step(rank)) {
  }
}

bool Simulator::Engine::step(Rank rank) {
  Node& node = state_.at(rank);
  if (node.codec == Codec::encoding || node.suspended) {
    return false;
  }
  const Algorithm& algorithm = *node.algorithm;
  switch (node.stage) {
    case Stage::between_rounds:
      if (node.leaving || node.rounds == state_.options.rounds) {
        node.stage = Stage::draining;
        return true;
      }
      return may_go_on(rank, algorithm.parameters_ready()) && begin_round(rank);
    case Stage::before_gradient:
      if (may_go_on(rank, true)) {
        start_gradient(rank);
      }
      return false;
    case Stage::gradient_taken:
      return may_go_on(rank, algorithm.accepts_gradient()) && take_gradient(rank);
    case Stage::stepping:
      if (!may_go_on(rank, algorithm.parameters_ready())) {
        return false;
      }
      finish_round(rank);
      return true;
    case Stage::draining:
      if (exchanges_.quiet(rank)) {
        lives_.end(rank, {});
      }
      return false;
    default:
      return false;
  }
}

bool Simulator::Engine::begin_round(Rank rank) {
  Node& node = state_.at(rank);
  node.stage = Stage::before_gradient;
  node.algorithm->begin_round();
  return exchanges_.start(rank, Codec::encoding);
}

void Simulator::Engine::start_gradient(Rank rank) {
  Node& node = state_.at(rank);
  accounts_.account(rank);
  node.stage = Stage::computing;
  if (state_.gradients) {
    state_.gradients->begin(rank);
  }
  state_.schedule(rank, Timer::computed, gradient_time(rank));
}

SimTime Simulator::Engine::gradient_time(Rank rank) {
  const Round round = state_.at(rank).rounds;
  return clients_ ? clients_->gradient_time(rank, round)
                  : draw(state_.spec(rank).compute, state_.options.seed, rank, round);
}

bool Simulator::Engine::take_gradient(Rank rank) {
  Node& node = state_.at(rank);
  node.stage = Stage::stepping;
  // Not before it is needed: while nodes wait for others, they need no room for their gradients.
  const auto taken = state_.gradients ? state_.gradients->wait(rank) : std::span<const float>();
  if (state_.hooks.model_changes) {
    state_.hooks.model_changes(rank);
  }
  if (Status status = node.algorithm->take_gradient(taken); !status.ok()) {
    lives_.end(rank, std::move(status));
    return false;
  }
  return exchanges_.start(rank, Codec::encoding);
}

void Simulator::Engine::finish_round(Rank rank) {
  Node& node = state_.at(rank);
  const Round round = node.rounds++;
  node.stage = Stage::between_rounds;
  if (state_.gradients) {
    state_.gradients->release(rank);
  }
  accounts_.record(TraceEntry::Kind::finished, rank, -1, round);
  if (state_.hooks.warning && state_.gradients) {
    for (const std::string& text : node.algorithm->take_warnings()) {
      state_.hooks.warning(rank, text);
    }
  }
  if (state_.hooks.round_finished) {
    state_.hooks.round_finished(rank, round, state_.now());
  }
  accounts_.finish_round(round);
}

}  // namespace sotto
