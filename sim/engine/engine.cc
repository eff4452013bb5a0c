#include "engine.h"

#include <algorithm>
#include <utility>

#include <sotto/base/check.h>
#include <sotto/base/frame.h>

#include "option_checks.h"

namespace sotto {

namespace {

SimTime& spent_in(SimulatedNode::Spent& spent, Phase phase) {
  switch (phase) {
    case Phase::compute:
      return spent.compute;
    case Phase::codec:
      return spent.codec;
    case Phase::wire:
      return spent.wire;
    default:
      return spent.idle;
  }
}

}  // namespace

Simulator::Engine::Engine(const Platform& platform, SimulatorOptions options,
                          std::vector<std::unique_ptr<Algorithm>> algorithms,
                          GradientFunction gradient, SimulatorHooks hooks)
    : options_(std::move(options)),
      hooks_(std::move(hooks)),
      network_(std::make_unique<Network>(platform, options_.network, options_.seed, queue_)),
      nodes_(algorithms.size()),
      transport_(std::make_unique<SimulatedTransport>(
          *network_, nodes_.size(),
          SimulatedTransport::Options{.transport = options_.transport,
                                      .payload = static_cast<bool>(gradient)})),
      alive_(nodes_.size()),
      awake_(nodes_.size()),
      round_counts_(nodes_.size()) {
  validate(options_, nodes_.size(), static_cast<std::size_t>(platform.hosts()));
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    nodes_[i].algorithm = std::move(algorithms[i]);
  }
  if (options_.sampling.clients != nullptr) {
    clients_.emplace(options_.sampling, nodes_.size(), options_.seed, platform, *network_);
  }
  presence_.emplace(options_.availability);
  connect();
  if (gradient) {
    gradients_ = std::make_unique<NodeGradients>(
        nodes_.size(), options_.threads, std::move(gradient),
        [this](Rank rank) -> const Algorithm& { return *at(rank).algorithm; });
  }
}

void Simulator::Engine::connect() {
  std::size_t connections = 0;
  for (const Node& node : nodes_) {
    connections += node.algorithm->peers().to.size();
  }
  transport_->reserve(connections);
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    const auto rank = static_cast<Rank>(i);
    Peers peers = nodes_[i].algorithm->peers();
    std::ranges::sort(peers.to);  // an algorithm may list them in any order
    transport_->connect(rank, peers.to, peers.frames_ahead(), peers.max_frame_bytes);
    schedule(rank, Timer::starts, spec(rank).start);
  }
  transport_->connected();
  for (std::size_t i = 0; i < options_.events.size(); ++i) {
    queue_.push({.time = options_.events[i].at,
                 .subject = static_cast<std::uint32_t>(i),
                 .kind = node_event});
  }
  begin_availability();
}

SimulationReport Simulator::Engine::run() {
  while (alive_ > 0 && !stopped_ && (awake_ > 0 || !stranded())) {
    if (network_->shares().dirty() && queue_.next_time() > now()) {
      network_->settle();
    }
    if (queue_.empty() || (queue_.size() == steps_queued() && only_steps_left())) {
      break;
    }
    const Event event = queue_.pop();
    ++events_;
    if (event.kind >= Network::kKinds) {
      handle(event);
    } else if (const auto arrival = network_->handle(event)) {
      handle_arrival(*arrival);
    }
  }
  if (!stopped_) {
    end_all_left();
  }
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    if (!nodes_[i].ended()) {
      end(static_cast<Rank>(i), {});
    }
  }
  if (gradients_) {
    gradients_->drain();
  }
  return make_report();
}

void Simulator::Engine::handle(const Event& event) {
  switch (event.kind) {
    case node_event:
      handle_node_event(options_.events[event.subject]);
      break;
    case sender_gone:
    case receiver_gone:
      handle_gone(event);
      break;
    case notice:
      handle_notice(event.subject);
      break;
    case node_turns:
      turn(static_cast<Rank>(event.subject));
      break;
    default:
      handle_timer(event);
  }
}

void Simulator::Engine::handle_timer(const Event& event) {
  const auto rank = static_cast<Rank>(event.subject);
  Node& node = at(rank);
  const auto timer = static_cast<Timer>(event.kind - node_timer);
  SimTime& due_at = node.due[timer];
  if (node.suspended || due_at != event.time || node.ended()) {
    return;
  }
  due_at = kNever;
  account(rank);
  switch (timer) {
    case Timer::starts:
      node.stage = Stage::between_rounds;
      node.start = node.accounted = now();
      break;
    case Timer::computed:
      node.stage = Stage::gradient_taken;
      record(TraceEntry::Kind::computed, rank);
      break;
    case Timer::coded:
    case Timer::posted: {
      const Codec how = std::exchange(node.codec, Codec::idle);
      if (post_encoded(rank)) {
        start_exchanges(rank, how);
      }
      break;
    }
    case Timer::carried:
      carried_exchange(rank);
      break;
    case Timer::deadline:
      check_deadline(rank);
      break;
    default:
      check(false, "a node's timer is one of these");
  }
  advance(rank);
}

void Simulator::Engine::schedule(Rank rank, Timer timer, SimTime after) {
  SimTime& time = at(rank).due[timer];
  if (at(rank).suspended) {
    time = after;  // from when it resumes on
    return;
  }
  time = plus(now(), after);
  queue_.push({.time = time,
               .subject = static_cast<std::uint32_t>(rank),
               .kind = std::uint32_t{node_timer} + timer});
}

void Simulator::Engine::advance(Rank rank) {
  while (step(rank)) {
  }
}

bool Simulator::Engine::step(Rank rank) {
  Node& node = at(rank);
  if (node.codec == Codec::encoding || node.suspended) {
    return false;
  }
  const Algorithm& algorithm = *node.algorithm;
  switch (node.stage) {
    case Stage::between_rounds:
      if (node.leaving || node.rounds == options_.rounds) {
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
      if (quiet(rank)) {
        end(rank, {});
      }
      return false;
    default:
      return false;
  }
}

bool Simulator::Engine::begin_round(Rank rank) {
  Node& node = at(rank);
  node.stage = Stage::before_gradient;
  node.algorithm->begin_round();
  return start_exchanges(rank, Codec::encoding);
}

void Simulator::Engine::start_gradient(Rank rank) {
  Node& node = at(rank);
  account(rank);
  node.stage = Stage::computing;
  if (gradients_) {
    gradients_->begin(rank);
  }
  schedule(rank, Timer::computed, gradient_time(rank));
}

SimTime Simulator::Engine::gradient_time(Rank rank) {
  const Round round = at(rank).rounds;
  return clients_ ? clients_->gradient_time(rank, round)
                  : draw(spec(rank).compute, options_.seed, rank, round);
}

bool Simulator::Engine::take_gradient(Rank rank) {
  Node& node = at(rank);
  node.stage = Stage::stepping;
  // Not before it is needed: while nodes wait for others, they need no room for their gradients.
  const auto taken = gradients_ ? gradients_->wait(rank) : std::span<const float>();
  if (hooks_.model_changes) {
    hooks_.model_changes(rank);
  }
  if (Status status = node.algorithm->take_gradient(taken); !status.ok()) {
    end(rank, std::move(status));
    return false;
  }
  return start_exchanges(rank, Codec::encoding);
}

void Simulator::Engine::finish_round(Rank rank) {
  Node& node = at(rank);
  const Round round = node.rounds++;
  node.stage = Stage::between_rounds;
  if (gradients_) {
    gradients_->release(rank);
  }
  record(TraceEntry::Kind::finished, rank, -1, round);
  if (hooks_.warning && gradients_) {
    for (const std::string& text : node.algorithm->take_warnings()) {
      hooks_.warning(rank, text);
    }
  }
  if (hooks_.round_finished) {
    hooks_.round_finished(rank, round, now());
  }
  round_counts_.advance(round);
  tell_rounds_of_all();
}

bool Simulator::Engine::start_exchanges(Rank rank, Codec how) {
  Node& node = at(rank);
  while (true) {
    // What it is at goes on with this.
    const Result<bool> more =
        node.codec == Codec::idle ? node.algorithm->next_exchange(scratch_) : false;
    if (!more.ok()) {
      end(rank, more.status());
      complete_all(rank);
      return false;
    }
    if (!*more) {
      complete_all(rank);
      return true;
    }
    if (const SimTime time = encode_time(rank, scratch_); time > 0) {
      account(rank);
      if (node.encoding == nullptr) {
        node.encoding = std::make_unique<Node::Encoding>();
      }
      std::swap(node.encoding->exchange, scratch_);
      node.encoding->frames = transport_->detach(node.encoding->exchange);
      node.codec = how;
      schedule(rank, how == Codec::encoding ? Timer::coded : Timer::posted, time);
      complete_all(rank);
      return true;
    }
    if (!post(rank, scratch_)) {
      complete_all(rank);
      return false;
    }
  }
}

SimTime Simulator::Engine::encode_time(Rank rank, const Exchange& exchange) const {
  const CodecCost& cost = spec(rank).codec;
  if (cost.encode_s_per_byte == 0) {
    return from_seconds(cost.seconds_per_exchange);
  }
  double elements = 0;
  const std::byte* last = nullptr;
  for (const Send& send : exchange.sends) {
    // Peers that get the same frame share its encoding.
    elements += send.frame.data() == last ? 0 : static_cast<double>(announced_elements(send.frame));
    last = send.frame.data();
  }
  return from_seconds(cost.seconds_per_exchange +
                      sizeof(float) * elements * cost.encode_s_per_byte);
}

void Simulator::Engine::book(Rank rank) {
  Node& node = at(rank);
  const SimTime passed = now() - node.accounted;
  node.accounted = now();
  if (node.stage == Stage::absent || node.ended()) {
    return;
  }
  Phase phase = Phase::idle;
  if (!node.suspended) {
    if (node.stage == Stage::computing || node.codec == Codec::computing) {
      phase = Phase::compute;
    } else if (node.codec != Codec::idle) {
      phase = Phase::codec;
    } else if (transport_->under_way(rank) > 0) {
      phase = Phase::wire;
    }
  }
  spent_in(node.spent, phase) += passed;
  if (hooks_.phase) {
    hooks_.phase(rank, phase, now() - passed, now());
  }
}

void Simulator::Engine::tell_rounds_of_all() {
  while (alive_ > 0 && !stopped_ && round_counts_.least() < options_.rounds &&
         round_counts_.all_past_least()) {
    if (hooks_.round_finished_by_all) {
      stopped_ = !hooks_.round_finished_by_all(round_counts_.least(), now());
    }
    round_counts_.drop_least();
  }
}

SimulationReport Simulator::Engine::make_report() {
  SimulationReport report;
  report.messages = messages_;
  report.events = events_;
  report.trace_sha256 = trace_.finish_hex();
  report.largest_lead = largest_lead_;
  // With very many nodes there would not be room for all of it at once.
  report.edges = transport_->edges();
  transport_.reset();
  report.links.reserve(network_->carried().size());
  for (std::size_t i = 0; i < network_->carried().size(); ++i) {
    const auto link = static_cast<LinkId>(i);
    const double bytes = network_->carried()[i];
    const double most = network_->offered(link);
    report.links.push_back(
        {.link = link, .bytes = bytes, .utilisation = most > 0 ? bytes / most : 0});
  }
  network_.reset();
  queue_ = {};
  report.nodes.reserve(nodes_.size());
  for (const Node& node : nodes_) {
    report.nodes.push_back({.status = {},
                            .rounds = node.rounds,
                            .start = node.start,
                            .end = node.end,
                            .compute = node.spent.compute,
                            .codec = node.spent.codec,
                            .wire = node.spent.wire,
                            .idle = node.spent.idle,
                            .counters = node.algorithm->counters()});
    report.end = std::max(report.end, node.end);
  }
  for (auto& [rank, status] : faults_) {
    report.nodes[static_cast<std::size_t>(rank)].status = std::move(status);
  }
  return report;
}

}  // namespace sotto
