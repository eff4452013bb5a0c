#include <sotto/sim/network/network.h>

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include <sotto/base/check.h>
#include <sotto/base/error.h>
#include <sotto/base/philox.h>

namespace sotto {
namespace {

/// Stands in for unlimited bandwidth on links that are limited at other times.
constexpr double kFastest = 1e18;
/// Linux forgets a connection's window after an idle retransmission timeout, at least this long.
constexpr SimTime kIdle = 200'000'000;
/// Spans from here on, in ns, are kNever.
constexpr double kEndOfTime = 9.2e18;

std::vector<double> capacities(const Platform& platform, double factor) {
  std::vector<double> capacities;
  for (const LinkSpec& link : platform.links()) {
    capacities.push_back(factor * std::min(link.bytes_per_s, kFastest));
  }
  return capacities;
}

void require(bool holds, const char* field, double value, const char* reason) {
  if (!holds) {
    refuse(field, fmt::format("{}", value), reason);
  }
}

void validate(const NetworkModel& model) {
  constexpr const char* kPositive = "it must be positive and finite";
  const auto positive = [](double value) { return value > 0 && value < kUnlimited; };
  require(positive(model.latency_factor), "latency factor", model.latency_factor, kPositive);
  require(positive(model.bandwidth_factor), "bandwidth factor", model.bandwidth_factor, kPositive);
  require(positive(model.segment_bytes), "segment size", model.segment_bytes, kPositive);
  require(model.window_bytes > 0, "window", model.window_bytes, "it must be positive");
  require(model.initial_window_bytes > 0, "initial window", model.initial_window_bytes,
          "it must be positive");
  require(model.weight_s >= 0 && model.weight_s < kUnlimited, "weight S", model.weight_s,
          "it must be 0 or more");
  require(model.crosstraffic >= 0 && model.crosstraffic <= 1, "crosstraffic", model.crosstraffic,
          "it must lie in 0 … 1");
}

}  // namespace

double slow_start_s(double bytes, double bytes_per_s, double round_trip_s, double window) {
  double delay = 0;
  while (window < bytes && window < bytes_per_s * round_trip_s) {
    delay += round_trip_s - window / bytes_per_s;
    bytes -= window;
    window *= 2;
  }
  return delay;
}

Network::Network(const Platform& platform, const NetworkModel& model, std::uint64_t seed,
                 EventQueue& queue)
    : platform_(platform),
      model_(model),
      seed_(seed),
      queue_(queue),
      share_(capacities(platform, model.bandwidth_factor)),
      changes_(platform.changes()),
      carried_(platform.links().size(), 0) {
  validate(model);
  for (const LinkSpec& link : platform.links()) {
    links_.push_back({.bytes_per_s = link.bytes_per_s,
                      .latency = link.latency,
                      .jitter = link.jitter,
                      .loss = link.loss,
                      .unlimited = link.bytes_per_s == kUnlimited});
  }
  for (std::size_t i = 0; i < changes_.size(); ++i) {
    LinkState& link = links_[changes_[i].link];
    link.changes = true;
    link.unlimited = false;
    queue_.push(
        {.time = changes_[i].at, .subject = static_cast<std::uint32_t>(i), .kind = link_changes});
  }
}

ConnectionId Network::connect(Rank from, Rank to) {
  const auto id = static_cast<ConnectionId>(connections_.size());
  Connection connection;
  connection.from = from;
  connection.to = to;
  connection.links = platform_.route(from, to).links;
  if (platform_.connected(to, from)) {
    connection.back = platform_.route(to, from).links;
  }
  for (const LinkId link : connection.links) {
    connection.jittery = connection.jittery || links_[link].jitter > 0;
  }
  const auto crossed = crossings(connection);
  const bool bound_may_change = std::any_of(connection.back.begin(), connection.back.end(),
                                            [this](LinkId link) { return links_[link].changes; });
  connection.limited = !crossed.empty() || bound_may_change;
  share_.add_flow(crossed);
  connections_.push_back(std::move(connection));
  update_route(id);
  return id;
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
  for (const LinkId link : connection.links) {
    add(link, 1);
  }
  for (const LinkId link : connection.back) {
    add(link, model_.crosstraffic);
  }
  return crossed;
}

SimTime Network::way(const std::vector<LinkId>& links) const {
  SimTime latency = 0;
  for (const LinkId link : links) {
    latency = later(latency, links_[link].latency);
  }
  return latency;
}

void Network::update_route(ConnectionId id) {
  Connection& connection = connections_[id];
  const SimTime there = way(connection.links);
  const double round_trip_s =
      to_seconds(later(there, connection.back.empty() ? there : way(connection.back)));
  const double latency = model_.latency_factor * static_cast<double>(there);
  connection.latency = latency < kEndOfTime ? static_cast<SimTime>(std::llround(latency)) : kNever;
  double penalty = to_seconds(there);
  double kept = 1;
  bool crosses = false;
  for (const LinkId link : connection.links) {
    penalty += model_.weight_s / std::max(links_[link].bytes_per_s, 1e-300);
    kept *= 1 - links_[link].loss;
    crosses = crosses || !links_[link].unlimited;
  }
  double bound = crosses ? kUnlimited : kFastest;
  if (round_trip_s > 0) {
    bound = std::min(bound, model_.window_bytes / round_trip_s);
    if (kept < 1) {
      bound = std::min(bound, model_.segment_bytes / round_trip_s * std::sqrt(1.5 / (1 - kept)));
    }
  }
  connection.limited = connection.limited || bound < kFastest;
  share_.set_share(id, model_.weigh_by_latency && penalty > 0 ? 1 / penalty : 1, bound);
}

void Network::send(ConnectionId id, std::uint64_t bytes) {
  Connection& connection = connections_[id];
  SimTime start = later(queue_.now(), connection.latency);
  if (connection.jittery && start != kNever) {
    start = later(start, jitter(connection));
  }
  ++connection.sent;
  if (connection.busy) {
    connection.waiting.push_back({bytes, start});
    return;
  }
  start = later(start, start_delay(connection, bytes));
  connection.busy = true;
  connection.bytes = bytes;
  if (start == queue_.now()) {
    begin(id);
  } else {
    queue_.push(
        {.time = start, .subject = id, .version = ++connection.version, .kind = message_begins});
  }
}

SimTime Network::start_delay(const Connection& connection, std::uint64_t bytes) const {
  if (model_.initial_window_bytes == kUnlimited ||
      (connection.used && queue_.now() - connection.last_used < kIdle)) {
    return 0;
  }
  double rate = kFastest;
  for (const LinkId link : connection.links) {
    rate = std::min(rate, model_.bandwidth_factor * links_[link].bytes_per_s);
  }
  const double round_trip_s = to_seconds(later(
      way(connection.links), way(connection.back.empty() ? connection.links : connection.back)));
  return rate > 0 ? from_seconds(slow_start_s(static_cast<double>(bytes), rate, round_trip_s,
                                              model_.initial_window_bytes))
                  : 0;
}

SimTime Network::jitter(const Connection& connection) const {
  RandomStream random({.seed = seed_,
                       .rank = connection.from,
                       .round = connection.sent,
                       .purpose = Purpose::jitter,
                       .bucket = static_cast<std::uint32_t>(connection.to)});
  double sum = 0;
  for (const LinkId link : connection.links) {
    sum += static_cast<double>(links_[link].jitter) * (2 * random.uniform() - 1);
  }
  return std::max(static_cast<SimTime>(std::llround(sum)), -connection.latency);
}

void Network::begin(ConnectionId id) {
  Connection& connection = connections_[id];
  connection.remaining = static_cast<double>(connection.bytes);
  connection.since = queue_.now();
  connection.flowing = true;
  if (connection.limited) {
    connection.rate = 0;
    share_.start(id);
  } else {
    connection.rate = kUnlimited;
    schedule_end(id);
  }
}

void Network::schedule_end(ConnectionId id) {
  Connection& connection = connections_[id];
  ++connection.version;
  if (connection.rate <= 0) {
    return;  // until a link on its way gives it something
  }
  const double left = std::ceil(connection.remaining / connection.rate * 1e9);
  queue_.push({.time = left < kEndOfTime ? later(queue_.now(), static_cast<SimTime>(left)) : kNever,
               .subject = id,
               .version = connection.version,
               .kind = message_ends});
}

std::optional<Arrival> Network::end(ConnectionId id) {
  Connection& connection = connections_[id];
  const Arrival arrival{id, connection.bytes};
  for (const LinkId link : connection.links) {
    carried_[link] += static_cast<double>(connection.bytes);
  }
  connection.used = true;
  connection.last_used = queue_.now();
  const bool more = connection.next < connection.waiting.size();
  const bool at_once = more && connection.waiting[connection.next].begin <= queue_.now();
  if (!at_once) {
    connection.flowing = false;
    if (connection.limited) {
      share_.stop(id);
    }
  }
  if (!more) {
    connection.busy = false;
    return arrival;
  }
  const Waiting next = connection.waiting[connection.next++];
  if (connection.next > connection.waiting.size() / 2) {
    connection.waiting.erase(
        connection.waiting.begin(),
        connection.waiting.begin() + static_cast<std::ptrdiff_t>(connection.next));
    connection.next = 0;
  }
  connection.bytes = next.bytes;
  if (at_once) {
    // The stream goes on: no share changes.
    connection.remaining = static_cast<double>(next.bytes);
    connection.since = queue_.now();
    schedule_end(id);
  } else {
    queue_.push({.time = next.begin,
                 .subject = id,
                 .version = ++connection.version,
                 .kind = message_begins});
  }
  return arrival;
}

void Network::abort(ConnectionId id) {
  Connection& connection = connections_[id];
  if (connection.flowing && connection.limited) {
    share_.stop(id);
  }
  ++connection.version;
  connection.busy = connection.flowing = connection.used = false;
  connection.waiting.clear();
  connection.next = 0;
}

std::optional<Arrival> Network::handle(const Event& event) {
  if (event.kind == link_changes) {
    change(event.subject);
    return {};
  }
  if (connections_[event.subject].version != event.version) {
    return {};
  }
  if (event.kind == message_begins) {
    begin(event.subject);
    return {};
  }
  return end(event.subject);
}

void Network::settle() {
  if (!share_.dirty()) {
    return;
  }
  const SimTime now = queue_.now();
  for (const FlowId id : share_.settle()) {
    Connection& connection = connections_[id];
    const double passed = to_seconds(now - connection.since);
    connection.remaining = std::max(0.0, connection.remaining - connection.rate * passed);
    connection.since = now;
    connection.rate = share_.rate(id);
    schedule_end(id);
  }
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

bool Network::passable(ConnectionId id) const {
  return std::none_of(connections_[id].links.begin(), connections_[id].links.end(),
                      [this](LinkId link) { return links_[link].bytes_per_s == 0; });
}

void Network::change(std::uint32_t number) {
  const LinkChange& change = changes_[number];
  LinkState& link = links_[change.link];
  link.bytes_per_s = change.bytes_per_s;
  share_.set_capacity(change.link,
                      model_.bandwidth_factor * std::min(change.bytes_per_s, kFastest));
  if (link.latency == change.latency && model_.weight_s == 0) {
    return;
  }
  link.latency = change.latency;
  const auto crosses = [&](const std::vector<LinkId>& links) {
    return std::find(links.begin(), links.end(), change.link) != links.end();
  };
  for (ConnectionId id = 0; id < connections_.size(); ++id) {
    if (crosses(connections_[id].links) || crosses(connections_[id].back)) {
      update_route(id);
    }
  }
}

}  // namespace sotto
