#include <sotto/sites/faults/site_liveness.h>

#include <algorithm>

#include <fmt/format.h>

namespace sotto {

using sites::MixingKind;
using sites::PeerState;

namespace {

/// What a site says of a peer; null unless it lists it.
const PeerState* of_peer(const ObservedSite& site, Rank peer) {
  const auto place = std::find(site.listed.begin(), site.listed.end(), peer);
  return place == site.listed.end()
             ? nullptr
             : &site.peers[static_cast<std::size_t>(place - site.listed.begin())];
}

}  // namespace

std::vector<Rank> neighbours(const Topology& topology, Rank site) {
  std::vector<Rank> all = topology.in_peers(site);
  const std::vector<Rank> out = topology.out_peers(site);
  all.insert(all.end(), out.begin(), out.end());
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

SimTime recovery_bound(const FaultPlan& plan, std::size_t message_bytes) {
  const SimTime round = plus(multiple(plan.interval, plan.gradient), plan.commit);
  SimTime bound = plus(multiple(2, plan.silence), plan.patience);
  for (const SimTime more :
       {multiple(4, plan.reconnect), multiple(4, round), multiple(8, plan.link.latency),
        from_seconds(4 * static_cast<double>(message_bytes) / plan.link.bytes_per_s)}) {
    bound = plus(bound, more);
  }
  // A liar may have a site wait for the whole patience in two rounds in a row; what a neighbour
  // sent for the second of them is applied after both.
  return plan.lies.empty() ? bound : plus(bound, plus(plan.patience, round));
}

Liveness::Liveness(const FaultPlan& plan, SimTime bound)
    : sites_(static_cast<std::size_t>(plan.sites)),
      bound_(bound),
      sums_(plan.exchange == MixingKind::secure_mean),
      found_after_(plan.found_after),
      disturbed_(sites_, 0),
      lies_(sites_),
      pairs_(sites_ * sites_),
      ways_(sites_ * sites_) {
  for (std::size_t site = 0; site < sites_; ++site) {
    lies_[site] = plan.lie_of(static_cast<Rank>(site)) != nullptr ? 1 : 0;
  }
}

Liveness::Trouble Liveness::look(SimTime now, std::span<const ObservedSite> sites,
                                 std::vector<char> contested, const Ways& ways) {
  contested_ = std::move(contested);
  for (const ObservedSite& site : sites) {
    if (site.running && lies_[static_cast<std::size_t>(site.site)] == 0) {
      if (auto trouble = look_at(now, site)) {
        return trouble;
      }
    }
  }
  for (std::size_t a = 0; a < sites_; ++a) {
    for (std::size_t b = a + 1; b < sites_; ++b) {
      Pair& pair = pairs_[a * sites_ + b];
      if (!sites[a].running || !sites[b].running || lies_[a] != 0 || lies_[b] != 0) {
        pair = {};
        continue;
      }
      if (auto trouble = look_at(now, sites[a], sites[b], ways)) {
        return trouble;
      }
    }
  }
  return std::nullopt;
}

Liveness::Trouble Liveness::look_at(SimTime now, const ObservedSite& site) const {
  const SimTime since = std::max(site.moved, disturbed_[static_cast<std::size_t>(site.site)]);
  const SimTime most = plus(bound_, site.waits_for_model ? found_after_ : 0);
  if (now - since <= most) {
    return std::nullopt;
  }
  std::string for_whom;
  for (const std::size_t place :
       site.node == nullptr ? std::vector<std::size_t>() : site.node->awaited()) {
    for_whom += fmt::format(" {}", site.listed[place]);
  }
  return std::pair(
      site.site,
      fmt::format("has not got on for {:.3f} s; it {}{}", to_seconds(now - since),
                  site.waits_for_model ? "waits for a model" : "waits for sites", for_whom));
}

Liveness::Trouble Liveness::look_at(SimTime now, const ObservedSite& a, const ObservedSite& b,
                                    const Ways& ways) {
  Pair& pair = pairs_[static_cast<std::size_t>(a.site) * sites_ + static_cast<std::size_t>(b.site)];
  const PeerState* b_at_a = of_peer(a, b.site);
  const PeerState* a_at_b = of_peer(b, a.site);
  if (b_at_a == nullptr || a_at_b == nullptr || contested(a.site) || contested(b.site) ||
      !ways.open_both_ways(a.site, b.site) || ways.slowed(a.site, b.site)) {
    pair = {};
    return std::nullopt;
  }
  pair.possible_since = pair.possible_since == kNever ? now : pair.possible_since;
  const SimTime since = std::max({pair.possible_since, disturbed_[static_cast<std::size_t>(a.site)],
                                  disturbed_[static_cast<std::size_t>(b.site)]});
  const bool in_touch = b_at_a->up && a_at_b->up && b_at_a->incarnation == b.state->incarnation &&
                        a_at_b->incarnation == a.state->incarnation;
  if (!in_touch) {
    pair.asked_since = since;
    if (now - since <= bound_) {
      return std::nullopt;
    }
    return std::pair(
        a.site, fmt::format("is not in touch with site {} after {:.3f} s ({} here, {} there{}{})",
                            b.site, to_seconds(now - since), b_at_a->up ? "up" : "down",
                            a_at_b->up ? "up" : "down", b_at_a->trouble.empty() ? "" : "; here: ",
                            b_at_a->trouble + (a_at_b->trouble.empty() ? "" : "; there: ") +
                                a_at_b->trouble));
  }
  if (pair.asked_since != kNever) {
    worst_recovery_ = std::max(worst_recovery_, now - pair.asked_since);
    pair.asked_since = kNever;
  }
  if (auto trouble = look_at_stream(now, a, b)) {
    return trouble;
  }
  return look_at_stream(now, b, a);
}

Liveness::Trouble Liveness::look_at_replaced(SimTime now, const ObservedSite& process,
                                             SimTime& alone_until,
                                             std::span<const ObservedSite> sites,
                                             const Ways& ways) const {
  const auto hears = std::count_if(process.listed.begin(), process.listed.end(), [&](Rank peer) {
    const ObservedSite& other = sites[static_cast<std::size_t>(peer)];
    return other.running && !contested(peer) && of_peer(other, process.site) != nullptr &&
           ways.open_both_ways(process.site, peer) && !ways.slowed(process.site, peer);
  });
  const bool can_hear = 2 * static_cast<std::size_t>(hears) > process.listed.size();
  if (!can_hear || !process.running) {
    alone_until = now;
  }
  if (now - alone_until <= bound_) {
    return std::nullopt;
  }
  return std::pair(process.site, fmt::format("was replaced, and goes on for {:.3f} s",
                                             to_seconds(now - alone_until)));
}

/// What was sent is applied some time; and where the one sends to the other, more is sent for as
/// long as both are there, whatever third parties do.
Liveness::Trouble Liveness::look_at_stream(SimTime now, const ObservedSite& from,
                                           const ObservedSite& to) {
  Way& way =
      ways_[static_cast<std::size_t>(from.site) * sites_ + static_cast<std::size_t>(to.site)];
  const PeerState& sender = *of_peer(from, to.site);
  const PeerState& receiver = *of_peer(to, from.site);
  const bool masks = !sums_ || std::ranges::all_of(from.peers, &PeerState::up);
  const bool sends = sender.hears_us && receiver.tells_us && masks;
  const bool waits = sender.sent != receiver.applied;
  const bool begun = from.state->mass > 0 && to.state->mass > 0;
  if ((!sends && !waits) || !begun || receiver.applied != way.applied) {
    way = {receiver.applied, now};
    return std::nullopt;
  }
  const SimTime since =
      std::max({way.since, disturbed_[static_cast<std::size_t>(from.site)],
                disturbed_[static_cast<std::size_t>(to.site)],
                pairs_[static_cast<std::size_t>(std::min(from.site, to.site)) * sites_ +
                       static_cast<std::size_t>(std::max(from.site, to.site))]
                    .possible_since});
  if (now - since <= bound_) {
    return std::nullopt;
  }
  return std::pair(to.site,
                   fmt::format("has applied {} of {} parcels of site {}, and no more for "
                               "{:.3f} s",
                               receiver.applied, sender.sent, from.site, to_seconds(now - since)));
}

}  // namespace sotto
