#include <sotto/sim/network/link_states.h>

#include <algorithm>

namespace sotto {

LinkStates::LinkStates(const Platform& platform, double bandwidth_factor)
    : bandwidth_factor_(bandwidth_factor) {
  kinds_.reserve(platform.links().size());
  for (const LinkSpec& link : platform.links()) {
    kinds_.push_back(kind_of({.bytes_per_s = link.bytes_per_s,
                              .latency = link.latency,
                              .jitter = link.jitter,
                              .loss = link.loss,
                              .loss_burst = link.loss_burst,
                              .queue_bytes = link.queue_bytes,
                              .unlimited = link.bytes_per_s == kUnlimited}));
  }
  for (const LinkChange& change : platform.changes()) {
    expect_change(change.link);
  }
  for (LinkId link = 0; link < platform.links().size(); ++link) {
    if (platform.links()[link].trace != nullptr) {
      expect_change(link);
    }
  }
}

std::uint32_t LinkStates::kind_of(const LinkState& state) {
  // Links of one kind come in turn with few others, as the ways out of hosts with the ways in.
  constexpr std::ptrdiff_t kLookedAt = 8;
  const auto few = std::min(std::ssize(states_), kLookedAt);
  const auto same = std::find(states_.rbegin(), states_.rbegin() + few, state);
  if (same != states_.rbegin() + few) {
    return static_cast<std::uint32_t>(std::ssize(states_) - 1 - (same - states_.rbegin()));
  }
  states_.push_back(state);
  return static_cast<std::uint32_t>(states_.size() - 1);
}

LinkState& LinkStates::own(LinkId link) {
  expect_change(link);
  return states_[kinds_[link]];
}

void LinkStates::expect_change(LinkId link) {
  if (changes(link)) {
    return;
  }
  places_.resize(kinds_.size(), kNone);
  places_[link] = static_cast<std::uint32_t>(users_.size());
  users_.emplace_back();
  const LinkState shared = states_[kinds_[link]];
  kinds_[link] = static_cast<std::uint32_t>(states_.size());
  states_.push_back(shared);
  states_.back().unlimited = false;
}

void LinkStates::add_user(LinkId link, std::uint32_t connection) {
  if (!changes(link)) {
    return;
  }
  auto& users = users_[places_[link]];
  if (users.empty() || users.back() != connection) {
    users.push_back(connection);
  }
}

std::span<const std::uint32_t> LinkStates::users(LinkId link) const {
  return changes(link) ? std::span(users_[places_[link]]) : std::span<const std::uint32_t>();
}

void LinkStates::change(const LinkChange& change) {
  LinkState& link = own(change.link);
  link.offered = offered(change.link, change.at);
  link.since = change.at;
  link.bytes_per_s = change.bytes_per_s;
  link.latency = change.latency;
}

SimTime LinkStates::latency_along(std::span<const LinkId> way) const {
  SimTime latency = 0;
  for (const LinkId link : way) {
    latency = plus(latency, (*this)[link].latency);
  }
  return latency;
}

double LinkStates::narrowest(std::span<const LinkId> way) const {
  double rate = kUnlimited;
  for (const LinkId link : way) {
    rate = std::min(rate, bandwidth_factor_ * (*this)[link].bytes_per_s);
  }
  return rate;
}

double LinkStates::chance_of_passing(std::span<const LinkId> way) const {
  double chance = 1;
  for (const LinkId link : way) {
    chance *= 1 - (*this)[link].loss;
  }
  return chance;
}

bool LinkStates::may_overflow(std::span<const LinkId> way) const {
  return std::ranges::any_of(way, [this](LinkId link) {
    const LinkState& state = (*this)[link];
    return state.queue_bytes < kUnlimited && !state.unlimited;  // for which nothing waits
  });
}

LinkId LinkStates::least_share(std::span<const LinkId> way, bool counted) const {
  const auto share = [&](LinkId link) {
    const std::uint32_t flows = (flows_.empty() ? 0 : flows_[link]) + (counted ? 0 : 1);
    return (*this)[link].bytes_per_s / std::max(flows, std::uint32_t{1});
  };
  return *std::ranges::min_element(way, {}, share);
}

bool LinkStates::open(std::span<const LinkId> way) const {
  return std::ranges::none_of(way, [this](LinkId link) { return (*this)[link].bytes_per_s == 0; });
}

double LinkStates::offered(LinkId id, SimTime now) const {
  const LinkState& link = (*this)[id];
  const SimTime span = now - link.since;
  return link.offered + (span > 0 ? bandwidth_factor_ * link.bytes_per_s * to_seconds(span) : 0);
}

void LinkStates::add_acknowledgements(LinkId link, double bytes_per_s) {
  acknowledgements_.resize(kinds_.size());
  acknowledgements_[link] += bytes_per_s;
}

double LinkStates::left_for_messages(LinkId id) const {
  // Acknowledgements that are lost are told by later ones: they do not take a link for themselves.
  constexpr double kMostTaken = 0.5;
  const double whole = bandwidth_factor_ * std::min((*this)[id].bytes_per_s, kFastest);
  const double taken = acknowledgements_.empty() ? 0 : acknowledgements_[id];
  return whole - std::clamp(taken, 0.0, kMostTaken * whole);
}

void LinkStates::count_flow(std::span<const LinkId> way, bool flows) {
  flows_.resize(kinds_.size());
  for (const LinkId link : way) {
    flows ? ++flows_[link] : --flows_[link];
  }
}

SimTime LinkStates::queueing_delay(std::span<const LinkId> way, double packet_bytes) const {
  double all = 0;
  double longest = 0;
  for (const LinkId id : way) {
    const std::uint32_t flows = flows_.empty() ? 0 : flows_[id];
    const double bytes_per_s = (*this)[id].bytes_per_s;
    if (flows > 1 && bytes_per_s > 0) {
      const double rate = bandwidth_factor_ * bytes_per_s;
      const double wait = (flows - 1) * packet_bytes / (2 * rate);
      all += wait;
      longest = std::max(longest, wait);
    }
  }
  return from_seconds(all - longest);
}

bool LinkStates::enter_queue(LinkId link, double bytes) {
  queued_.resize(kinds_.size());
  if (queued_[link] > (*this)[link].queue_bytes) {
    return false;  // beside the packet that leaves, and waits no more, there is no room for this
  }
  queued_[link] += bytes;
  return true;
}

}  // namespace sotto
