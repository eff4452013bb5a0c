#include <sotto/sites/faults/fault_schedule.h>

#include <algorithm>
#include <utility>

namespace sotto {

FaultSchedule::FaultSchedule(const FaultPlan& plan, std::uint64_t seed, FaultTarget& target)
    : faults_(draw_faults(plan, seed)),
      target_(target),
      waiting_(static_cast<std::size_t>(plan.sites)) {}

SimTime FaultSchedule::last_end() const {
  SimTime last = 0;
  for (const PlannedFault& fault : faults_) {
    last = std::max(last, fault.lasting == kNever ? fault.at : plus(fault.at, fault.lasting));
  }
  return last;
}

bool FaultSchedule::joins_later(Rank site) const {
  return std::any_of(faults_.begin(), faults_.end(), [&](const PlannedFault& fault) {
    return fault.kind == FaultKind::join && std::ranges::count(fault.sites, site) > 0;
  });
}

void FaultSchedule::begin(std::size_t fault) {
  const PlannedFault& planned = faults_[fault];
  for (const Rank site : planned.sites) {
    if (planned.round || planned.moment != FaultMoment::any) {
      waiting_[static_cast<std::size_t>(site)].push_back(fault);
    } else {
      inject(fault, site);
    }
  }
}

bool FaultSchedule::inject_due(Rank site, Round round, FaultMoment moment) {
  std::vector<std::size_t>& waiting = waiting_[static_cast<std::size_t>(site)];
  const auto due = std::find_if(waiting.begin(), waiting.end(), [&](std::size_t fault) {
    const PlannedFault& planned = faults_[fault];
    return planned.moment == moment && round >= planned.round.value_or(0);
  });
  if (due == waiting.end()) {
    return false;
  }
  const std::size_t fault = *due;
  waiting.erase(due);
  inject(fault, site);
  return true;
}

std::vector<Rank> FaultSchedule::peers_of(const PlannedFault& fault, Rank site) const {
  std::vector<Rank> peers = fault.peers;
  for (std::size_t rank = 0; fault.peers.empty() && rank < waiting_.size(); ++rank) {
    peers.push_back(static_cast<Rank>(rank));
  }
  std::erase(peers, site);
  return peers;
}

void FaultSchedule::disturb(FaultKind kind, const Active& active) {
  target_.disturb(active.site);
  if (fault_kind(kind).between) {
    for (const Rank peer : active.peers) {
      target_.disturb(peer);
    }
  }
}

void FaultSchedule::inject(std::size_t fault, Rank site) {
  const PlannedFault& planned = faults_[fault];
  Active active = {.fault = fault,
                   .site = site,
                   .process = target_.process_of(site),
                   .peers = peers_of(planned, site)};
  if (!take_effect(planned, active)) {
    return;
  }
  target_.on_injected(planned, site, active.peers);
  if (planned.kind != FaultKind::partition || site == planned.sites.front()) {
    ++injected_[static_cast<std::size_t>(planned.kind)];
  }
  disturb(planned.kind, active);
  if (fault_kind(planned.kind).lasts && planned.lasting != kNever) {
    active_.push_back(std::move(active));
    target_.end_after(planned.lasting, active_.size() - 1);
  }
}

/// Does to one site what the fault does; false where there is nothing to be done it to.
bool FaultSchedule::take_effect(const PlannedFault& fault, Active& active) {
  const Rank site = active.site;
  switch (fault.kind) {
    case FaultKind::kill:
    case FaultKind::restore:
    case FaultKind::lose:
    case FaultKind::corrupt:
      return active.process && target_.kill(fault, site);
    case FaultKind::stop:
    case FaultKind::replace:
      return active.process && target_.stop(fault, site);
    case FaultKind::reset:
      return std::ranges::count_if(active.peers, [&](Rank peer) {
               return target_.reset(site, peer, fault.bytes);
             }) > 0;
    case FaultKind::one_way:
    case FaultKind::partition:
      for (const Rank peer : active.peers) {
        target_.block(site, peer);
        if (fault.kind == FaultKind::partition) {
          target_.block(peer, site);
        }
      }
      return true;
    case FaultKind::slow:
      for (const Rank peer : active.peers) {
        target_.set_link(site, peer, fault.link);
        target_.set_link(peer, site, fault.link);
      }
      return true;
    case FaultKind::forget:
      return forget_peers(active);
    case FaultKind::clock:
      return active.process && target_.set_clock(site);
    case FaultKind::join:
      if (active.process) {
        return false;
      }
      target_.begin_process(site);
      return true;
    case FaultKind::leave:
      return active.process && target_.leave(site);
  }
  return false;
}

/// Takes the peers that are listed off the list; only these are on it again in the end. Nothing
/// happens where too few would stay for a process to begin with.
bool FaultSchedule::forget_peers(Active& active) {
  std::vector<Rank> listed = target_.listed(active.site);
  std::erase_if(active.peers, [&](Rank rank) { return std::ranges::count(listed, rank) == 0; });
  if (listed.size() < active.peers.size() + target_.least_listed()) {
    active.peers.clear();
    return false;
  }
  std::erase_if(listed, [&](Rank rank) { return std::ranges::count(active.peers, rank) > 0; });
  target_.relist(active.site, std::move(listed));
  return !active.peers.empty();
}

void FaultSchedule::list_again(const Active& active) {
  std::vector<Rank> listed = target_.listed(active.site);
  for (const Rank peer : active.peers) {
    if (std::ranges::count(listed, peer) == 0) {
      listed.push_back(peer);
    }
  }
  target_.relist(active.site, std::move(listed));
}

void FaultSchedule::end(std::size_t number) {
  const Active active = active_[number];
  const PlannedFault& fault = faults_[active.fault];
  target_.on_over(fault, active.site);
  disturb(fault.kind, active);
  switch (fault.kind) {
    case FaultKind::stop:
    case FaultKind::replace:
      target_.resume(active.site, *active.process);
      break;
    case FaultKind::one_way:
    case FaultKind::partition:
      for (const Rank peer : active.peers) {
        target_.unblock(active.site, peer);
        if (fault.kind == FaultKind::partition) {
          target_.unblock(peer, active.site);
        }
      }
      break;
    case FaultKind::slow:
      for (const Rank peer : active.peers) {
        target_.set_link(active.site, peer, std::nullopt);
        target_.set_link(peer, active.site, std::nullopt);
      }
      break;
    case FaultKind::forget:
      list_again(active);
      break;
    default:  // killed or gone: it comes back, unless it is there
      target_.bring_back(active.site);
  }
}

}  // namespace sotto
