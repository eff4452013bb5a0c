#include "liveness.h"

#include <algorithm>

#include <fmt/format.h>

namespace sotto::federation {
namespace {

using federated::PeerState;

/// What a site says of a peer; null unless it lists it.
const PeerState* of_peer(const Process& process, Rank peer) {
  const auto place = std::find(process.listed.begin(), process.listed.end(), peer);
  return place == process.listed.end()
             ? nullptr
             : &process.peers[static_cast<std::size_t>(place - process.listed.begin())];
}

}  // namespace

Liveness::Liveness(const FaultPlan& plan, std::size_t message_bytes)
    : sites_(static_cast<std::size_t>(plan.sites)),
      bound_(2 * plan.silence + plan.patience + 4 * plan.reconnect +
             4 * (static_cast<SimTime>(plan.interval) * plan.gradient + plan.commit) +
             8 * plan.link.latency +
             from_seconds(4 * static_cast<double>(message_bytes) / plan.link.bytes_per_s)),
      found_after_(plan.found_after),
      disturbed_(sites_, 0),
      pairs_(sites_ * sites_),
      ways_(sites_ * sites_) {}

Liveness::Trouble Liveness::look(SimTime now, std::span<const Process* const> processes,
                                 std::vector<char> contested, const Wires& wires) {
  contested_ = std::move(contested);
  for (const Process* process : processes) {
    if (process != nullptr && process->running()) {
      if (auto trouble = look_at(now, *process)) {
        return trouble;
      }
    }
  }
  for (std::size_t a = 0; a < sites_; ++a) {
    for (std::size_t b = a + 1; b < sites_; ++b) {
      Pair& pair = pairs_[a * sites_ + b];
      if (processes[a] == nullptr || processes[b] == nullptr || !processes[a]->running() ||
          !processes[b]->running()) {
        pair = {};
        continue;
      }
      if (auto trouble = look_at(now, *processes[a], *processes[b], wires)) {
        return trouble;
      }
    }
  }
  return std::nullopt;
}

Liveness::Trouble Liveness::look_at(SimTime now, const Process& process) const {
  const SimTime since = std::max(process.moved, disturbed_[static_cast<std::size_t>(process.site)]);
  const SimTime most = bound_ + (process.phase == Phase::waiting ? found_after_ : 0);
  if (now - since <= most) {
    return std::nullopt;
  }
  std::string for_whom;
  for (const std::size_t place : process.node->awaited()) {
    for_whom += fmt::format(" {}", process.listed[place]);
  }
  return std::pair(
      process.site,
      fmt::format("has not got on for {:.3f} s; it {}{}", to_seconds(now - since),
                  process.phase == Phase::waiting ? "waits for a model" : "waits for sites",
                  for_whom));
}

Liveness::Trouble Liveness::look_at(SimTime now, const Process& a, const Process& b,
                                    const Wires& wires) {
  Pair& pair = pairs_[static_cast<std::size_t>(a.site) * sites_ + static_cast<std::size_t>(b.site)];
  const PeerState* b_at_a = of_peer(a, b.site);
  const PeerState* a_at_b = of_peer(b, a.site);
  if (b_at_a == nullptr || a_at_b == nullptr || contested(a.site) || contested(b.site) ||
      !wires.open_both_ways(a.site, b.site) || wires.slowed(a.site, b.site)) {
    pair = {};
    return std::nullopt;
  }
  pair.possible_since = pair.possible_since == kNever ? now : pair.possible_since;
  const SimTime since = std::max({pair.possible_since, disturbed_[static_cast<std::size_t>(a.site)],
                                  disturbed_[static_cast<std::size_t>(b.site)]});
  const bool in_touch = b_at_a->up && a_at_b->up && b_at_a->incarnation == b.state.incarnation &&
                        a_at_b->incarnation == a.state.incarnation;
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

Liveness::Trouble Liveness::look_at_replaced(SimTime now, Process& process,
                                             std::span<const Process* const> processes,
                                             const Wires& wires) const {
  const auto hears = std::count_if(process.listed.begin(), process.listed.end(), [&](Rank peer) {
    const Process* other = processes[static_cast<std::size_t>(peer)];
    return other != nullptr && other->running() && !contested(peer) &&
           of_peer(*other, process.site) != nullptr && wires.open_both_ways(process.site, peer) &&
           !wires.slowed(process.site, peer);
  });
  const bool can_hear = 2 * static_cast<std::size_t>(hears) > process.listed.size();
  if (!can_hear || process.stopped) {
    process.alone_until = now;
  }
  if (now - process.alone_until <= bound_) {
    return std::nullopt;
  }
  return std::pair(process.site, fmt::format("was replaced, and goes on for {:.3f} s",
                                             to_seconds(now - process.alone_until)));
}

/// What was sent is applied some time.
Liveness::Trouble Liveness::look_at_stream(SimTime now, const Process& from, const Process& to) {
  Way& way =
      ways_[static_cast<std::size_t>(from.site) * sites_ + static_cast<std::size_t>(to.site)];
  const PeerState& sender = *of_peer(from, to.site);
  const PeerState& receiver = *of_peer(to, from.site);
  if (sender.sent == receiver.applied || receiver.applied != way.applied) {
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

}  // namespace sotto::federation
