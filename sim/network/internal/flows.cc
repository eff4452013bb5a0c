#include "flows.h"

#include <algorithm>
#include <utility>

#include <sotto/sim/network/tcp/mean_rate.h>

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

Flows::Flows(const Platform& platform, const NetworkModel& model, ConnectionWays& ways,
             EventQueue& queue)
    : model_(model),
      ways_(ways),
      queue_(queue),
      share_(capacities(platform, model.bandwidth_factor)),
      acknowledgements_(model.acknowledgements) {}

void Flows::reserve(std::size_t more) {
  flows_.reserve(flows_.size() + more);
  // Most connections share a way out of their host and a way into another one with others.
  share_.reserve(more, 2);
}

void Flows::add() {
  const auto id = static_cast<ConnectionId>(flows_.size());
  const auto crossed = crossings(id);
  const bool bound_may_change = std::ranges::any_of(
      ways_.back(id), [this](LinkId link) { return ways_.links().changes(link); });
  flows_.push_back({.limited = !crossed.empty() || bound_may_change || model_.slow_start()});
  share_.add_flow(crossed);
  acknowledgements_.add_flow();
  if (packets_take_turns()) {
    queueing_delays_.push_back(0);
  }
  update(id);
}

std::vector<Crossing> Flows::crossings(ConnectionId id) const {
  std::vector<Crossing> crossed;
  const auto add = [&](LinkId link, double usage) {
    if (ways_.links()[link].unlimited || usage == 0) {
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
  for (const LinkId link : ways_.there(id)) {
    add(link, 1);
  }
  for (const LinkId link : ways_.back(id)) {
    add(link, model_.crosstraffic);
  }
  return crossed;
}

void Flows::update(ConnectionId id) {
  const LinkStates& links = ways_.links();
  const double round_trip_s = to_seconds(ways_.round_trip(id));
  double penalty = to_seconds(links.latency_along(ways_.there(id)));
  bool crosses = false;
  for (const LinkId link : ways_.there(id)) {
    penalty += model_.weight_bytes / std::max(links[link].bytes_per_s, 1e-300);
    crosses = crosses || !links[link].unlimited;
  }
  double bound = crosses ? kUnlimited : kFastest;
  if (model_.acknowledgements > 0) {
    for (const LinkId link : ways_.back(id)) {
      bound = std::min(bound,
                       model_.bandwidth_factor * links[link].bytes_per_s / model_.acknowledgements);
    }
  }
  if (round_trip_s > 0) {
    bound = std::min(bound, model_.window_bytes / round_trip_s);
    const double kept = links.chance_of_passing(ways_.there(id));
    if (kept < 1 && !model_.slow_start()) {
      bound = std::min(bound, mean_rate(1 - kept, round_trip_s, model_.segment_bytes));
    }
  }
  flows_[id].limited = flows_[id].limited || bound < kFastest;
  share_.set_share(id, model_.weigh_by_latency && penalty > 0 ? 1 / penalty : 1, bound);
}

void Flows::start(ConnectionId id) {
  Flow& flow = flows_[id];
  flow.since = queue_.now();
  flow.flowing = true;
  if (!flow.limited) {
    flow.rate = kUnlimited;
    expect_end(id);
    return;
  }
  flow.rate = 0;
  share_.start(id);
  if (packets_take_turns()) {
    ways_.links().count_flow(ways_.there(id), true);
  }
}

void Flows::stop(ConnectionId id) {
  Flow& flow = flows_[id];
  if (flow.flowing && flow.limited) {
    share_.stop(id);
    charge_acknowledgements(id, 0);
    if (packets_take_turns()) {
      ways_.links().count_flow(ways_.there(id), false);
    }
  }
  flow.flowing = false;
}

std::optional<double> Flows::advance(ConnectionId id, double most) {
  Flow& flow = flows_[id];
  const SimTime since = std::exchange(flow.since, queue_.now());
  if (flow.rate == kUnlimited) {
    flow.remaining = 0;
    return {};
  }
  if (flow.rate <= 0 || flow.since <= since) {
    return {};
  }
  const double passed = std::min(flow.rate * to_seconds(flow.since - since), most);
  flow.remaining -= passed;
  return passed;
}

SimTime Flows::time_after(ConnectionId id, double bytes) const {
  const double left = std::max(bytes, 0.0) / flows_[id].rate * 1e9;
  const SimTime whole = from_nanoseconds(left);
  const SimTime rest = static_cast<double>(whole) < left ? 1 : 0;
  return plus(queue_.now(), plus(whole, rest));
}

void Flows::expect(ConnectionId id, SimTime time, Network::Kind kind) {
  queue_.push({.time = time, .subject = id, .version = ++flows_[id].version, .kind = kind});
}

void Flows::expect_end(ConnectionId id) {
  const Flow& flow = flows_[id];
  if (flow.rate > 0) {
    expect(id, time_after(id, flow.remaining), Network::message_ends);
  } else {
    expect_nothing(id);  // until a link on its way gives it something
  }
}

void Flows::charge_acknowledgements(ConnectionId id, double rate) {
  acknowledgements_.charge(id, rate, ways_.back(id), ways_.links(), share_);
}

std::span<const FlowId> Flows::settle() {
  if (!acknowledgements_.none()) {
    return settle_with_acknowledgements();
  }
  return share_.dirty() ? share_.settle() : std::span<const FlowId>();
}

std::span<const FlowId> Flows::settle_with_acknowledgements() {
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

void Flows::take_rate(ConnectionId id) {
  flows_[id].rate = share_.rate(id);
  if (packets_take_turns()) {
    queueing_delays_[id] = ways_.links().queueing_delay(ways_.there(id), model_.packet_bytes);
  }
}

void Flows::change(const LinkChange& change) {
  LinkStates& links = ways_.links();
  const bool same_latency = links[change.link].latency == change.latency;
  links.change(change);
  share_.set_capacity(change.link, links.left_for_messages(change.link));
  if (same_latency && model_.weight_bytes == 0 && model_.acknowledgements == 0) {
    return;
  }
  for (const ConnectionId id : links.users(change.link)) {
    ways_.update(id);
    update(id);
  }
}

}  // namespace sotto
