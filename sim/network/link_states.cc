#include <sotto/sim/network/link_states.h>

#include <algorithm>

namespace sotto {

LinkStates::LinkStates(const Platform& platform, double bandwidth_factor)
    : bandwidth_factor_(bandwidth_factor), places_(platform.links().size(), kNone) {
  links_.reserve(platform.links().size());
  for (const LinkSpec& link : platform.links()) {
    links_.push_back({.bytes_per_s = link.bytes_per_s,
                      .latency = link.latency,
                      .jitter = link.jitter,
                      .loss = link.loss,
                      .loss_burst = link.loss_burst,
                      .unlimited = link.bytes_per_s == kUnlimited});
  }
}

void LinkStates::expect_change(LinkId link) {
  links_[link].unlimited = false;
  if (!changes(link)) {
    places_[link] = static_cast<std::uint32_t>(users_.size());
    users_.emplace_back();
  }
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
  LinkState& link = links_[change.link];
  link.offered = offered(change.link, change.at);
  link.since = change.at;
  link.bytes_per_s = change.bytes_per_s;
  link.latency = change.latency;
}

SimTime LinkStates::latency_along(std::span<const LinkId> way) const {
  SimTime latency = 0;
  for (const LinkId link : way) {
    latency = plus(latency, links_[link].latency);
  }
  return latency;
}

double LinkStates::narrowest(std::span<const LinkId> way) const {
  double rate = kUnlimited;
  for (const LinkId link : way) {
    rate = std::min(rate, bandwidth_factor_ * links_[link].bytes_per_s);
  }
  return rate;
}

double LinkStates::chance_of_passing(std::span<const LinkId> way) const {
  double chance = 1;
  for (const LinkId link : way) {
    chance *= 1 - links_[link].loss;
  }
  return chance;
}

bool LinkStates::open(std::span<const LinkId> way) const {
  return std::ranges::none_of(way, [this](LinkId link) { return links_[link].bytes_per_s == 0; });
}

double LinkStates::offered(LinkId id, SimTime now) const {
  const LinkState& link = links_[id];
  const SimTime span = now - link.since;
  return link.offered + (span > 0 ? bandwidth_factor_ * link.bytes_per_s * to_seconds(span) : 0);
}

double LinkStates::left_for_messages(LinkId id) const {
  // Acknowledgements that are lost are told by later ones: they do not take a link for themselves.
  constexpr double kMostTaken = 0.5;
  const LinkState& link = links_[id];
  const double whole = bandwidth_factor_ * std::min(link.bytes_per_s, kFastest);
  return whole - std::clamp(link.acknowledgements, 0.0, kMostTaken * whole);
}

void LinkStates::count_flow(std::span<const LinkId> way, bool flows) {
  for (const LinkId link : way) {
    flows ? ++links_[link].flows : --links_[link].flows;
  }
}

SimTime LinkStates::queueing_delay(std::span<const LinkId> way, double packet_bytes) const {
  double all = 0;
  double longest = 0;
  for (const LinkId id : way) {
    const LinkState& link = links_[id];
    if (link.flows > 1 && link.bytes_per_s > 0) {
      const double rate = bandwidth_factor_ * link.bytes_per_s;
      const double wait = (link.flows - 1) * packet_bytes / (2 * rate);
      all += wait;
      longest = std::max(longest, wait);
    }
  }
  return from_seconds(all - longest);
}

}  // namespace sotto
