#include <sotto/sites/nodes/roster_peers.h>

#include <algorithm>
#include <utility>

namespace sotto {
namespace {

using sites::NodePhase;
using sites::RosterMember;

/// After this number of a peer comes 1 again.
constexpr Rank kLastRank = 1'000'000'000;

bool has_gone(const RosterMember& member) { return is_gone(member.entry.phase) || member.conflict; }

bool is_there(const RosterMember& member) { return !has_gone(member) && !member.suspected; }

}  // namespace

Rank RosterPeers::rank_of(const std::string& name, const std::map<std::string, RosterPeer>& next) {
  if (const auto before = peers_.find(name); before != peers_.end()) {
    return before->second.rank;
  }
  const auto has_last = [this](const auto& one) { return one.second.rank == last_rank_; };
  do {
    last_rank_ = last_rank_ < kLastRank ? last_rank_ + 1 : 1;
  } while (std::ranges::any_of(peers_, has_last) || std::ranges::any_of(next, has_last));
  return last_rank_;
}

void RosterPeers::drop_oldest(std::map<std::string, RosterPeer>& next) const {
  std::vector<std::pair<sites::RosterTime, std::string>> drained;
  for (const auto& [name, peer] : next) {
    if (peer.until && name != kept_) {
      drained.emplace_back(*peer.until, name);
    }
  }
  std::ranges::sort(drained);
  for (std::size_t k = 0; k + kMostDrained < drained.size(); ++k) {
    next.erase(drained[k].second);
  }
}

bool RosterPeers::wanted(const RosterMember& member) const {
  return reach_ == RosterReach::all ? !has_gone(member) && member.entry.name != self_
                                    : member.neighbour;
}

bool RosterPeers::follow(const sites::RosterView& view, sites::RosterTime now) {
  std::map<std::string, RosterPeer> next;
  for (const RosterMember& member : view.members) {
    const std::string& name = member.entry.name;
    if (wanted(member)) {
      next[name] = {.rank = rank_of(name, next), .address = member.entry.address, .until = {}};
      continue;
    }
    const auto before = peers_.find(name);
    if (before == peers_.end() || next.contains(name)) {
      continue;
    }
    RosterPeer peer = before->second;
    peer.until = peer.until.value_or(now + kDrainFor);
    const bool kept = name == kept_ && !is_gone(member.entry.phase);
    if (kept || (is_there(member) && now < *peer.until)) {
      next[name] = std::move(peer);
    }
  }
  drop_oldest(next);
  const bool changed = !std::ranges::equal(next, peers_, [](const auto& one, const auto& other) {
    return one.first == other.first && one.second.rank == other.second.rank &&
           one.second.address == other.second.address;
  });
  peers_ = std::move(next);
  return changed;
}

std::vector<sites::DrainingPeer> RosterPeers::draining(const sites::RosterView& view) const {
  std::vector<sites::DrainingPeer> draining;
  for (const RosterMember& member : view.members) {
    const auto peer = peers_.find(member.entry.name);
    const bool drained = peer != peers_.end() && peer->second.until && peer->first != kept_;
    const bool leaves = member.entry.phase != NodePhase::up;
    if (leaves || drained) {
      draining.push_back({.name = member.entry.name, .leaves = leaves});
    }
  }
  return draining;
}

}  // namespace sotto
