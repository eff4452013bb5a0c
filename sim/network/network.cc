#include <sotto/sim/network/network.h>

#include <algorithm>
#include <cmath>

#include <sotto/base/check.h>
#include <sotto/base/philox.h>
#include <sotto/sim/network/tcp/mean_rate.h>

#include "internal/connection.h"
#include "internal/packet_connection.h"
#include "internal/windowed_connection.h"

namespace sotto {
namespace {

/// Bytes/s of the links up to the last one that is limited, or may come to be: those behind it are
/// never shared.
std::vector<double> capacities(const Platform& platform, double factor) {
  const auto links = platform.links();
  std::size_t count = 0;
  for (const LinkChange& change : platform.changes()) {
    count = std::max<std::size_t>(count, change.link + std::size_t{1});
  }
  for (std::size_t id = count; id < links.size(); ++id) {
    count = links[id].bytes_per_s < kUnlimited || links[id].trace != nullptr ? id + 1 : count;
  }
  std::vector<double> capacities;
  capacities.reserve(count);
  for (const LinkSpec& link : links.first(count)) {
    capacities.push_back(factor * std::min(link.bytes_per_s, kFastest));
  }
  return capacities;
}

}  // namespace

Network::Network(const Platform& platform, const NetworkModel& model, std::uint64_t seed,
                 EventQueue& queue)
    : platform_(platform),
      model_(model),
      seed_(seed),
      queue_(queue),
      links_(platform, model.bandwidth_factor),
      share_(capacities(platform, model.bandwidth_factor)),
      acknowledgements_(model.acknowledgements),
      changes_(platform.changes()),
      traces_(platform),
      carried_(platform.links().size(), 0) {
  validate(model);
  for (std::size_t i = 0; i < changes_.size(); ++i) {
    links_.expect_change(changes_[i].link);
    queue_.push(
        {.time = changes_[i].at, .subject = static_cast<std::uint32_t>(i), .kind = link_changes});
  }
  for (std::uint32_t number = 0; number < traces_.size(); ++number) {
    links_.expect_change(traces_.link(number));
    schedule_trace(number);
  }
}

Network::~Network() = default;

void Network::reserve(std::size_t connections) {
  connections_.reserve(connections_.size() + connections);
  // Most connections share a way out of their host and a way into another one with others.
  share_.reserve(connections, 2);
  if (slow_start()) {
    tcp_.reserve(tcp_.size() + connections);
  }
}

ConnectionId Network::connect(Rank from, Rank to) {
  const auto id = static_cast<ConnectionId>(connections_.size());
  Connection connection;
  connection.from = from;
  connection.to = to;
  connection.path = paths_.add(platform_.route(from, to).links);
  if (platform_.connected(to, from)) {
    connection.reverse_path = paths_.add(platform_.route(to, from).links);
  }
  for (const LinkId link : links(connection.path)) {
    connection.jittery = connection.jittery || links_[link].jitter > 0;
  }
  const auto crossed = crossings(connection);
  const bool bound_may_change = std::ranges::any_of(
      links(connection.reverse_path), [this](LinkId link) { return links_.changes(link); });
  connection.limited = !crossed.empty() || bound_may_change || slow_start();
  share_.add_flow(crossed);
  connections_.push_back(std::move(connection));
  if (model_.packet_bytes > 0) {
    queueing_delays_.push_back(0);
  }
  acknowledgements_.add_flow();
  if (slow_start()) {
    tcp_.emplace_back(fresh_window());
    tcp_[id].set_packets(PacketConnection::make_stream(*this, id));
  }
  pair_streams(id);
  for (const Path& way : {connections_[id].path, connections_[id].reverse_path}) {
    for (const LinkId link : links(way)) {
      links_.add_user(link, id);
    }
  }
  update_route(id);
  return id;
}

std::span<const LinkId> Network::reverse_links(const Connection& connection) const {
  return links(connection.reverse_path.count == 0 ? connection.path : connection.reverse_path);
}

std::size_t Network::under_way(ConnectionId id) const {
  const Connection& connection = connections_[id];
  const PacketStream* const stream = stream_of(id);
  return connection.waiting.size() + connection.landing.size() + (connection.busy ? 1 : 0) +
         (stream == nullptr ? 0 : stream->awaited);
}

std::optional<ConnectionId> Network::moving() const {
  for (ConnectionId id = 0; id < connections_.size(); ++id) {
    if (under_way(id) > 0 && passable(id)) {
      return id;
    }
  }
  return {};
}

bool Network::will_move() const {
  const auto opens = [this](LinkId link) {
    return links_[link].bytes_per_s > 0 || traces_.steps_later(link);
  };
  for (ConnectionId id = 0; id < connections_.size(); ++id) {
    if (under_way(id) > 0 && std::ranges::all_of(links(connections_[id].path), opens)) {
      return true;
    }
  }
  return false;
}

std::vector<Crossing> Network::crossings(const Connection& connection) const {
  std::vector<Crossing> crossed;
  const auto add = [&](LinkId link, double usage) {
    if (links_[link].unlimited || usage == 0) {
      return;
    }
    const auto same = std::find_if(crossed.begin(), crossed.end(),
                                   [link](const Crossing& c) { return c.link == link; });
    if (same == crossed.end()) {
      crossed.push_back({link, usage});
    } else {
      same->usage += usage;
    }
  };
  for (const LinkId link : links(connection.path)) {
    add(link, 1);
  }
  for (const LinkId link : links(connection.reverse_path)) {
    add(link, model_.crosstraffic);
  }
  return crossed;
}

SimTime Network::round_trip(ConnectionId id) const {
  const Connection& connection = connections_[id];
  const std::span<const LinkId> there = links(connection.path);
  return plus(links_.latency_along(there), links_.latency_along(reverse_links(connection)));
}

SimTime Network::latency(ConnectionId id) const { return connections_[id].latency; }

SimTime Network::latency_back(ConnectionId id) const {
  const Connection& connection = connections_[id];
  const double latency =
      model_.latency_factor * static_cast<double>(links_.latency_along(reverse_links(connection)));
  return from_seconds(latency * 1e-9);
}

void Network::update_route(ConnectionId id) {
  Connection& connection = connections_[id];
  const SimTime there = links_.latency_along(links(connection.path));
  const double round_trip_s = to_seconds(round_trip(id));
  const double latency = model_.latency_factor * static_cast<double>(there);
  connection.latency = from_nanoseconds(std::round(latency));
  double penalty = to_seconds(there);
  bool crosses = false;
  for (const LinkId link : links(connection.path)) {
    penalty += model_.weight_bytes / std::max(links_[link].bytes_per_s, 1e-300);
    crosses = crosses || !links_[link].unlimited;
  }
  double bound = crosses ? kUnlimited : kFastest;
  if (model_.acknowledgements > 0) {
    for (const LinkId link : links(connection.reverse_path)) {
      bound = std::min(
          bound, model_.bandwidth_factor * links_[link].bytes_per_s / model_.acknowledgements);
    }
  }
  if (round_trip_s > 0) {
    bound = std::min(bound, model_.window_bytes / round_trip_s);
    const double kept = links_.chance_of_passing(links(connection.path));
    if (kept < 1 && !slow_start()) {
      bound = std::min(bound, mean_rate(1 - kept, round_trip_s, model_.segment_bytes));
    }
  }
  connection.limited = connection.limited || bound < kFastest;
  share_.set_share(id, model_.weigh_by_latency && penalty > 0 ? 1 / penalty : 1, bound);
}

void Network::send(ConnectionId id, std::uint64_t bytes) {
  Connection& connection = connections_[id];
  if (sending(id) == Sending::packets) {
    PacketConnection(*this, id).write(bytes, false);
    return;
  }
  const SimTime begins =
      model_.latency_first ? plus(queue_.now(), latency_of_next(connection)) : queue_.now();
  if (connection.busy) {
    connection.waiting.push({bytes, begins});
    return;
  }
  connection.busy = true;
  connection.bytes = bytes;
  if (begins == queue_.now()) {
    begin(id);
  } else {
    queue_.push(
        {.time = begins, .subject = id, .version = ++connection.version, .kind = message_begins});
  }
}

SimTime Network::latency_of_next(Connection& connection) const {
  if (!connection.jittery || connection.latency == kNever) {
    return connection.latency;
  }
  RandomStream random({.seed = seed_,
                       .rank = connection.from,
                       .round = ++connection.drawn,
                       .purpose = Purpose::jitter,
                       .bucket = static_cast<std::uint32_t>(connection.to)});
  double sum = 0;
  for (const LinkId link : links(connection.path)) {
    sum += static_cast<double>(links_[link].jitter) * (2 * random.uniform() - 1);
  }
  return plus(connection.latency,
              std::max(static_cast<SimTime>(std::llround(sum)), -connection.latency));
}

void Network::begin(ConnectionId id) {
  Connection& connection = connections_[id];
  connection.remaining = static_cast<double>(connection.bytes);
  if (slow_start()) {
    WindowedConnection(*this, id).begin();
  } else {
    flow(id);
  }
}

void Network::flow(ConnectionId id) {
  Connection& connection = connections_[id];
  connection.since = queue_.now();
  connection.flowing = true;
  if (connection.limited) {
    connection.rate = 0;
    share_.start(id);
    count_flow(connection, true);
  } else {
    connection.rate = kUnlimited;
    schedule(id);
  }
}

void Network::stop(ConnectionId id) {
  Connection& connection = connections_[id];
  if (connection.flowing && connection.limited) {
    share_.stop(id);
    charge_acknowledgements(id, 0);
    count_flow(connection, false);
  }
  connection.flowing = false;
}

void Network::count_flow(const Connection& connection, bool flows) {
  if (model_.packet_bytes > 0) {
    links_.count_flow(links(connection.path), flows);
  }
}

void Network::advance(ConnectionId id) {
  Connection& connection = connections_[id];
  const SimTime now = queue_.now();
  if (connection.rate == kUnlimited) {
    connection.remaining = 0;
  } else if (connection.rate > 0 && now > connection.since) {
    double passed = connection.rate * to_seconds(now - connection.since);
    if (sending(id) == Sending::windowed) {
      passed = std::min(passed, tcp_[id].window().allowance());
      tcp_[id].sent(std::min(passed, connection.remaining), now);
    }
    connection.remaining -= passed;
  }
  connection.since = now;
}

void Network::schedule(ConnectionId id) {
  Connection& connection = connections_[id];
  ++connection.version;
  if (connection.rate <= 0) {
    return;  // until a link on its way gives it something
  }
  const auto after = [&](double bytes) {
    const double left = std::max(bytes, 0.0) / connection.rate * 1e9;
    const SimTime whole = from_nanoseconds(left);
    const SimTime rest = static_cast<double>(whole) < left ? 1 : 0;
    return plus(queue_.now(), plus(whole, rest));
  };
  Event event{.time = after(connection.remaining),
              .subject = id,
              .version = connection.version,
              .kind = message_ends};
  if (sending(id) == Sending::windowed && !tcp_[id].window().open()) {
    const SimTime turns =
        std::min(after(tcp_[id].window().allowance()), WindowedConnection(*this, id).next_turn());
    if (turns < event.time) {
      event.time = std::max(turns, queue_.now());
      event.kind = window_turns;
    }
  }
  queue_.push(event);
}

std::optional<Arrival> Network::end(ConnectionId id) {
  Connection& connection = connections_[id];
  advance(id);
  const std::uint64_t bytes = connection.bytes;
  // What of the last nanosecond was not needed is the next message's.
  go_on(id, std::max(0.0, -connection.remaining));
  if (model_.latency_first) {
    return arrive(id, bytes);
  }
  const SimTime lands =
      std::max(plus(queue_.now(), plus(latency_of_next(connection), queueing_delay(id))),
               connection.last_landing);
  if (lands == queue_.now() && connection.landing.empty()) {
    return arrive(id, bytes);
  }
  connection.last_landing = lands;
  connection.landing.push({bytes, lands});
  queue_.push({.time = lands, .subject = id, .version = connection.epoch, .kind = message_arrives});
  return {};
}

void Network::go_on(ConnectionId id, double ahead) {
  Connection& connection = connections_[id];
  connection.busy = !connection.waiting.empty();
  const bool at_once = connection.busy && connection.waiting.front().begin <= queue_.now();
  if (!at_once) {
    stop(id);
  }
  if (!connection.busy) {
    return;
  }
  const Connection::Waiting next = connection.waiting.pop();
  connection.bytes = next.bytes;
  if (at_once) {
    // The stream goes on: no share changes.
    connection.remaining = static_cast<double>(next.bytes) - ahead;
    if (slow_start()) {
      tcp_[id].window().offer(connection.remaining);
    }
    schedule(id);
  } else {
    queue_.push({.time = next.begin,
                 .subject = id,
                 .version = ++connection.version,
                 .kind = message_begins});
  }
}

Arrival Network::arrive(ConnectionId id, std::uint64_t bytes) {
  for (const LinkId link : links(connections_[id].path)) {
    carried_[link] += static_cast<double>(bytes);
  }
  return {id, bytes};
}

void Network::abort(ConnectionId id) {
  Connection& connection = connections_[id];
  stop(id);
  ++connection.version;
  ++connection.epoch;
  connection.busy = false;
  connection.waiting.clear();
  connection.landing.clear();
  connection.last_landing = 0;
  if (sending(id) == Sending::packets) {
    PacketConnection(*this, id).empty_queue();
  }
  if (slow_start()) {
    tcp_[id].abort(fresh_window());
    tcp_[id].set_packets(PacketConnection::make_stream(*this, id));
  }
}

std::optional<Arrival> Network::handle(const Event& event) {
  switch (event.kind) {
    case link_changes: {
      const LinkChange& change_now = changes_[event.subject];
      change(change_now.link, change_now.bytes_per_s, change_now.latency);
      return {};
    }
    case trace_steps:
      step_trace(event.subject);
      return {};
    case message_arrives:
      return land(event);
    case packet_arrives:
      PacketConnection(*this, event.subject).take_packet(event);
      return {};
    case acknowledged:
      PacketConnection(*this, event.subject).take_lone_acknowledgement(event);
      return {};
    case acknowledgement_due:
      PacketConnection(*this, event.subject).acknowledge_late(event);
      return {};
    case sender_wakes:
      PacketConnection(*this, event.subject).wake_sender(event);
      return {};
    default:
      return connections_[event.subject].version == event.version ? go_on_with(event)
                                                                  : std::nullopt;
  }
}

std::optional<Arrival> Network::land(const Event& event) {
  Connection& connection = connections_[event.subject];
  const bool lands = event.version == connection.epoch && !connection.landing.empty() &&
                     connection.landing.front().at <= queue_.now();
  return lands ? std::optional(arrive(event.subject, connection.landing.pop().bytes))
               : std::nullopt;
}

std::optional<Arrival> Network::go_on_with(const Event& event) {
  const ConnectionId id = event.subject;
  switch (event.kind) {
    case message_ends:
      if (sending(id) != Sending::packets) {
        return end(id);
      }
      PacketConnection(*this, id).leave_front();
      return {};
    case message_begins:
      begin(id);
      return {};
    case window_turns:
      WindowedConnection(*this, id).turn();
      return {};
    default:
      check(false, "an event of another kind is not the network's");
      return {};
  }
}

void Network::charge_acknowledgements(ConnectionId id, double rate) {
  acknowledgements_.charge(id, rate, links(connections_[id].reverse_path), links_, share_);
}

void Network::settle() {
  if (model_.acknowledgements > 0) {
    for (const ConnectionId id : settle_with_acknowledgements()) {
      take_rate(id);
    }
  } else if (share_.dirty()) {
    for (const ConnectionId id : share_.settle()) {
      take_rate(id);
    }
  }
}

std::span<const ConnectionId> Network::settle_with_acknowledgements() {
  // Acknowledgements of the rates change the rates, by less each time.
  constexpr int kMostPasses = 4;
  settled_.clear();
  for (int pass = 0; share_.dirty() && pass < kMostPasses; ++pass) {
    const std::size_t before = settled_.size();
    for (const FlowId id : share_.settle()) {
      settled_.push_back(id);
    }
    for (std::size_t i = before; i < settled_.size(); ++i) {
      charge_acknowledgements(settled_[i], share_.rate(settled_[i]));
    }
  }
  std::ranges::sort(settled_);
  settled_.erase(std::unique(settled_.begin(), settled_.end()), settled_.end());
  return settled_;
}

void Network::take_rate(ConnectionId id) {
  advance(id);
  connections_[id].rate = share_.rate(id);
  if (model_.packet_bytes > 0) {
    queueing_delays_[id] = links_.queueing_delay(links(connections_[id].path), model_.packet_bytes);
  }
  schedule(id);
}

std::optional<Arrival> Network::step() {
  while (true) {
    if (share_.dirty() && queue_.next_time() > queue_.now()) {
      settle();
    }
    if (queue_.empty()) {
      return {};
    }
    if (auto arrival = handle(queue_.pop())) {
      return arrival;
    }
  }
}

bool Network::passable(ConnectionId id) const { return links_.open(links(connections_[id].path)); }

bool Network::passable_back(ConnectionId id) const {
  return links_.open(reverse_links(connections_[id]));
}

void Network::change(LinkId link, double bytes_per_s, SimTime latency) {
  const bool same_latency = links_[link].latency == latency;
  links_.change({.at = queue_.now(), .link = link, .bytes_per_s = bytes_per_s, .latency = latency});
  share_.set_capacity(link, links_.left_for_messages(link));
  for (const ConnectionId id : links_.users(link)) {
    if (!same_latency || model_.weight_bytes != 0 || model_.acknowledgements != 0) {
      update_route(id);
    }
  }
}

void Network::step_trace(std::uint32_t number) {
  --trace_events_;
  const LinkChange step = traces_.step(number);
  change(step.link, step.bytes_per_s, step.latency);
  schedule_trace(number);
}

void Network::schedule_trace(std::uint32_t number) {
  if (const SimTime next = traces_.next(number); next != kNever) {
    queue_.push({.time = next, .subject = number, .kind = trace_steps});
    ++trace_events_;
  }
}

void Network::pair_streams(ConnectionId id) {
  if (sending(id) == Sending::fluid ||
      (model_.packet_bytes == 0 && sending(id) == Sending::windowed)) {
    return;
  }
  const Connection& connection = connections_[id];
  by_ends_.try_emplace({connection.from, connection.to}, id);
  if (const auto back = by_ends_.find({connection.to, connection.from}); back != by_ends_.end()) {
    tcp_[id].pair_with(back->second);
    tcp_[back->second].pair_with(id);
  }
}

void Network::notify_back(ConnectionId id) {
  if (const auto back = slow_start() ? tcp_[id].reverse() : std::nullopt;
      back && stream_of(*back) != nullptr) {
    PacketConnection(*this, *back).write(0, true);
  }
}

}  // namespace sotto
