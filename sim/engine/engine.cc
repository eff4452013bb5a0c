#include "engine.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include <sotto/base/check.h>
#include <sotto/base/error.h>
#include <sotto/base/frame.h>

namespace sotto {

SimTime& Simulator::Engine::spent_in(Node& node, Phase phase) {
  switch (phase) {
    case Phase::compute:
      return node.compute;
    case Phase::codec:
      return node.codec_time;
    case Phase::wire:
      return node.wire;
    default:
      return node.idle;
  }
}

Simulator::Engine::Engine(const Platform& platform, SimulatorOptions options,
                          std::vector<std::unique_ptr<Algorithm>> algorithms,
                          GradientFunction gradient, SimulatorHooks hooks)
    : options_(std::move(options)),
      gradient_(std::move(gradient)),
      hooks_(std::move(hooks)),
      network_(std::make_unique<Network>(platform, options_.network, options_.seed, queue_)),
      nodes_(algorithms.size()),
      transport_(std::make_unique<SimulatedTransport>(
          *network_, nodes_.size(),
          SimulatedTransport::Options{.transport = options_.transport,
                                      .payload = static_cast<bool>(gradient_)})),
      alive_(nodes_.size()),
      awake_(nodes_.size()) {
  validate(platform);
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    nodes_[i].algorithm = std::move(algorithms[i]);
  }
  at_round_ = {nodes_.size()};
  begin_sampling(platform);
  connect();
  if (gradient_) {
    gradients_.resize(nodes_.size());
    pool_ = std::make_unique<GradientPool>(nodes_.size(), options_.threads, [this](Rank rank) {
      const Algorithm& node = *at(rank).algorithm;
      const auto x = node.parameters();
      gradient_of(rank) = spare_.lend(x.size());
      gradient_(rank, node.round(), x, gradient_of(rank));
    });
  }
}

void Simulator::Engine::validate(const Platform& platform) const {
  const auto n = nodes_.size();
  if (n == 0 || n > static_cast<std::size_t>(platform.hosts())) {
    refuse(
        "nodes", fmt::format("{}", n),
        fmt::format("there must be one at least, and the platform has {} hosts", platform.hosts()));
  }
  if (options_.nodes.size() != 1 && options_.nodes.size() != n) {
    refuse("node specifications", fmt::format("{}", options_.nodes.size()),
           fmt::format("give one for all, or one for each of the {} nodes", n));
  }
  for (const NodeSpec& node : options_.nodes) {
    sotto::validate(node.compute);
    const CodecCost& codec = node.codec;
    for (const double cost :
         {codec.encode_s_per_byte, codec.decode_s_per_byte, codec.seconds_per_exchange}) {
      if (!(cost >= 0 && cost <= 1e6)) {
        refuse("codec cost", fmt::format("{}", cost), "it must be 0 to 10⁶ seconds");
      }
    }
    if (!(node.flops_per_second >= 0 && node.flops_per_second <= 1e30)) {
      refuse("flops per second", fmt::format("{}", node.flops_per_second),
             "it must be 0 to 10³⁰, where 0 leaves the work out");
    }
    if (node.start < 0) {
      refuse("start of a node", fmt::format("{} ns", node.start), "it must be 0 or more");
    }
  }
  for (const NodeEvent& event : options_.events) {
    if (event.node < 0 || static_cast<std::size_t>(event.node) >= n || event.at < 0) {
      refuse("node event", fmt::format("node {} at {} ns", event.node, event.at),
             fmt::format("nodes are 0 … {}, and time begins at 0", n - 1));
    }
  }
  if (!options_.availability.empty() && options_.availability.size() != n) {
    refuse("availability", fmt::format("{}", options_.availability.size()),
           fmt::format("give none, or one for each of the {} nodes", n));
  }
  for (const NodeAvailability& one : options_.availability) {
    if (one.times != nullptr) {
      sotto::validate(*one.times);
    }
    if (one.start < 0) {
      refuse("start of an availability", fmt::format("{} ns", one.start), "it must be 0 or more");
    }
  }
  if (options_.timeout <= 0) {
    refuse("timeout", fmt::format("{} ns", options_.timeout), "it must be positive");
  }
  if (options_.threads < 1) {
    refuse("threads", fmt::format("{}", options_.threads), "there must be at least one");
  }
}

void Simulator::Engine::begin_sampling(const Platform& platform) {
  const ClientSampling& sampling = options_.sampling;
  if (sampling.clients == nullptr) {
    return;
  }
  const std::vector<Client>& clients = *sampling.clients;
  const auto able = [](const Client& client) {
    return client.gradient_s >= 0 && client.gradient_s < kUnlimited && client.bytes_per_s > 0 &&
           client.bytes_per_s < kUnlimited;
  };
  if (!(sampling.model_bytes >= 0 && sampling.model_bytes < kUnlimited)) {
    refuse("model_bytes", fmt::to_string(sampling.model_bytes), "it is 0 or more bytes");
  }
  if (clients.size() < nodes_.size() || sampling.every == 0 ||
      !std::ranges::all_of(clients, able)) {
    refuse("clients", fmt::format("{}", clients.size()),
           fmt::format("there must be one for each of the {} nodes, with a time for a gradient and "
                       "a bandwidth, and some rounds from one sample to the next",
                       nodes_.size()));
  }
  for (Rank rank = 0; static_cast<std::size_t>(rank) < nodes_.size(); ++rank) {
    const auto out = platform.egress(rank);
    const auto in = platform.ingress(rank);
    const auto limited = [&](const std::optional<LinkId>& link) {
      return link && platform.links()[*link].bytes_per_s < kUnlimited;
    };
    if (!limited(out) || !limited(in)) {
      refuse("clients", fmt::format("node {}", rank),
             "a client's bandwidth takes the place of its ways out and in, which have none");
    }
    network_->expect_bandwidths(*out);
    network_->expect_bandwidths(*in);
    places_.push_back({*out, *in});
  }
  sample_.emplace(options_.seed, nodes_.size(), clients.size());
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
    schedule(rank, node_starts, spec(rank).start);
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
    if (nodes_[i].stage != Stage::ended) {
      end(static_cast<Rank>(i), {});
    }
  }
  if (pool_) {
    pool_->drain();
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
      handle_node(event);
  }
}

void Simulator::Engine::handle_node(const Event& event) {
  const auto rank = static_cast<Rank>(event.subject);
  Node& node = at(rank);
  SimTime& due_at = due(rank, event.kind);
  if (node.suspended || due_at != event.time || node.stage == Stage::ended) {
    return;
  }
  due_at = kNever;
  account(rank);
  switch (event.kind) {
    case node_starts:
      node.stage = Stage::between_rounds;
      node.start = node.accounted = now();
      break;
    case computed:
      node.stage = Stage::gradient_taken;
      record(TraceEntry::Kind::computed, rank);
      break;
    case coded:
    case posted: {
      const Codec how = std::exchange(node.codec, Codec::idle);
      if (post_encoded(rank)) {
        start_exchanges(rank, how);
      }
      break;
    }
    case carried:
      carried_exchange(rank);
      break;
    case deadline:
      check_deadline(rank);
      break;
    default:
      check(false, "a node's event is one of these");
  }
  advance(rank);
}

void Simulator::Engine::schedule(Rank rank, std::uint32_t kind, SimTime after) {
  SimTime& time = due(rank, kind);
  if (at(rank).suspended) {
    time = after;  // from when it resumes on
    return;
  }
  time = plus(now(), after);
  queue_.push({.time = time, .subject = static_cast<std::uint32_t>(rank), .kind = kind});
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
  if (pool_) {
    pool_->submit(rank);
  }
  schedule(rank, computed, gradient_time(rank));
}

SimTime Simulator::Engine::gradient_time(Rank rank) {
  const Round round = at(rank).rounds;
  if (!sample_) {
    return draw(spec(rank).compute, options_.seed, rank, round);
  }
  const ClientSampling& sampling = options_.sampling;
  const Client& client =
      (*sampling
            .clients)[sample_->client(rank, static_cast<std::uint32_t>(round / sampling.every))];
  if (round % sampling.every != 0) {
    return from_seconds(client.gradient_s);
  }
  const Place& place = places_[static_cast<std::size_t>(rank)];
  network_->set_bandwidth(place.out, client.bytes_per_s);
  network_->set_bandwidth(place.in, client.bytes_per_s);
  return from_seconds(sampling.model_bytes / client.bytes_per_s + client.gradient_s);
}

bool Simulator::Engine::take_gradient(Rank rank) {
  Node& node = at(rank);
  node.stage = Stage::stepping;
  if (pool_) {
    // Not before it is needed: while nodes wait for others, they need no room for their gradients.
    pool_->wait(rank);
  }
  if (hooks_.model_changes) {
    hooks_.model_changes(rank);
  }
  const std::span<const float> taken =
      pool_ ? std::span<const float>(gradient_of(rank)) : std::span<const float>();
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
  if (pool_) {
    spare_.give_back(std::exchange(gradient_of(rank), {}));
  }
  record(TraceEntry::Kind::finished, rank, -1, round);
  if (hooks_.warning && gradient_) {
    for (const std::string& text : node.algorithm->take_warnings()) {
      hooks_.warning(rank, text);
    }
  }
  if (hooks_.round_finished) {
    hooks_.round_finished(rank, round, now());
  }
  count_round(round, true);
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
        node.encoding = std::make_unique<Encoding>();
      }
      std::swap(node.encoding->exchange, scratch_);
      node.encoding->frames = transport_->detach(node.encoding->exchange);
      node.codec = how;
      schedule(rank, how == Codec::encoding ? coded : posted, time);
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
  if (node.stage == Stage::absent || node.stage == Stage::ended) {
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
  spent_in(node, phase) += passed;
  if (hooks_.phase) {
    hooks_.phase(rank, phase, now() - passed, now());
  }
}

void Simulator::Engine::count_round(Round rounds, bool goes_on) {
  const auto place = static_cast<std::size_t>(rounds - floor_);
  --at_round_[place];
  if (goes_on) {
    if (place + 1 == at_round_.size()) {
      at_round_.push_back(0);
    }
    ++at_round_[place + 1];
  }
  while (alive_ > 0 && !stopped_ && floor_ < options_.rounds && at_round_.front() == 0) {
    if (hooks_.round_finished_by_all) {
      stopped_ = !hooks_.round_finished_by_all(floor_, now());
    }
    ++floor_;
    at_round_.pop_front();
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
                            .compute = node.compute,
                            .codec = node.codec_time,
                            .wire = node.wire,
                            .idle = node.idle,
                            .counters = node.algorithm->counters()});
    report.end = std::max(report.end, node.end);
  }
  for (auto& [rank, status] : faults_) {
    report.nodes[static_cast<std::size_t>(rank)].status = std::move(status);
  }
  return report;
}

}  // namespace sotto
