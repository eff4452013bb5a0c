// What befalls the processes of a world.
#include <algorithm>
#include <utility>

#include "world.h"

namespace sotto::sites {

/// From now on the fault may happen: at once, or when its sites are where it waits for them.
void World::arm(std::size_t fault) {
  const PlannedFault& planned = faults_[fault];
  for (const Rank site : planned.sites) {
    if (planned.round || planned.moment != FaultMoment::any) {
      slots_[static_cast<std::size_t>(site)].armed.push_back(fault);
    } else {
      strike(fault, site);
    }
  }
}

bool World::strike_at(Process& process, FaultMoment moment) {
  if (process.fenced) {
    return false;
  }
  std::vector<std::size_t>& armed = slots_[static_cast<std::size_t>(process.site)].armed;
  const auto due = std::find_if(armed.begin(), armed.end(), [&](std::size_t fault) {
    const PlannedFault& planned = faults_[fault];
    return planned.moment == moment && process.state.round >= planned.round.value_or(0);
  });
  if (due == armed.end()) {
    return false;
  }
  const std::size_t fault = *due;
  armed.erase(due);
  strike(fault, process.site);
  return !process.alive;
}

std::vector<Rank> World::others(const PlannedFault& fault, Rank site) const {
  std::vector<Rank> peers = fault.peers;
  for (Rank rank = 0; fault.peers.empty() && rank < plan_.sites; ++rank) {
    peers.push_back(rank);
  }
  std::erase(peers, site);
  return peers;
}

void World::strike(std::size_t fault, Rank site) {
  const PlannedFault& planned = faults_[fault];
  Active active = {.fault = fault, .site = site, .process = {}, .peers = others(planned, site)};
  if (const Process* process = present(site); process != nullptr && process->alive) {
    active.process = process->id;
  }
  if (!happens(planned, site, active)) {
    return;
  }
  const FaultKindInfo& kind = fault_kind(planned.kind);
  note(SimulatedSiteEvent::Kind::fault, site,
       kind.between && active.peers.size() == 1 ? active.peers[0] : -1,
       static_cast<std::uint64_t>(planned.kind));
  if (planned.kind != FaultKind::partition || site == planned.sites.front()) {
    ++report_.injected[static_cast<std::size_t>(planned.kind)];
  }
  whole_ = whole_ && !kind.loses;
  liveness_.disturb(site, queue_.now());
  for (const Rank peer : kind.between ? active.peers : std::vector<Rank>()) {
    liveness_.disturb(peer, queue_.now());
  }
  if (kind.lasts && planned.lasting != kNever) {
    active_.push_back(std::move(active));
    queue_.push({.time = later(queue_.now(), planned.lasting),
                 .subject = static_cast<std::uint32_t>(active_.size() - 1),
                 .kind = fault_over});
  }
}

/// Does what the fault does to one site; false when there is nothing to be done to.
bool World::happens(const PlannedFault& fault, Rank site, Active& active) {
  Process* process = active.process ? &processes_[*active.process] : nullptr;
  switch (fault.kind) {
    case FaultKind::kill:
    case FaultKind::restore:
    case FaultKind::lose:
    case FaultKind::corrupt:
      return process != nullptr && kills(fault, *process);
    case FaultKind::stop:
    case FaultKind::replace:
      if (process == nullptr || process->stopped) {
        return false;
      }
      process->stopped = true;
      process->stopped_at = queue_.now();
      if (process->reachable) {
        wires_.stop(process->id);
      }
      note(SimulatedSiteEvent::Kind::stopped, site);
      if (fault.kind == FaultKind::replace) {
        take_over(*process);
      }
      return true;
    case FaultKind::reset:
      return std::count_if(active.peers.begin(), active.peers.end(),
                           [&](Rank peer) { return wires_.reset(site, peer, fault.bytes); }) > 0;
    case FaultKind::one_way:
    case FaultKind::partition:
      for (const Rank peer : active.peers) {
        wires_.block(site, peer);
        if (fault.kind == FaultKind::partition) {
          wires_.block(peer, site);
        }
      }
      return true;
    case FaultKind::slow:
      for (const Rank peer : active.peers) {
        wires_.set_link(site, peer, fault.link);
        wires_.set_link(peer, site, fault.link);
      }
      return true;
    case FaultKind::forget: {
      std::vector<Rank> listed = slots_[static_cast<std::size_t>(site)].listed;
      const auto forgotten = [&](Rank rank) {
        return std::count(active.peers.begin(), active.peers.end(), rank) > 0;
      };
      std::erase_if(active.peers,
                    [&](Rank rank) { return std::count(listed.begin(), listed.end(), rank) == 0; });
      std::erase_if(listed, forgotten);
      relist(site, listed);
      return !active.peers.empty();
    }
    case FaultKind::clock:
      return process != nullptr;  // nobody looks at a wall clock
    case FaultKind::join:
      if (process != nullptr) {
        return false;
      }
      begin_process(site);
      return true;
    case FaultKind::leave:
      if (process == nullptr || process->stopped || process->leaving) {
        return false;
      }
      process->leaving = true;
      return true;
  }
  return false;
}

bool World::kills(const PlannedFault& fault, Process& process) {
  Disk& disk = *process.disk;
  if (fault.kind == FaultKind::corrupt && disk.commits.empty()) {
    return false;
  }
  end_process(process, false);
  if (fault.kind == FaultKind::restore) {
    for (std::uint64_t i = 0; i < fault.back && disk.commits.size() > 1; ++i) {
      disk.commits.pop_back();
    }
    disk.life = disk.commits.empty() ? disk.life : disk.commits.back().life;
  }
  if (fault.kind == FaultKind::lose) {
    disk.bare = disk.book();
    disk.bare.give_up();
    disk.commits.clear();
    disk.life = 0;
  }
  disk.damaged = fault.kind == FaultKind::corrupt;
  return true;
}

/// Another process with the same key goes on from what is written; the old one keeps a disk of its
/// own, as a machine does that was cut off.
void World::take_over(Process& process) {
  process.fenced = true;
  process.alone_until = queue_.now();
  process.disk = std::make_shared<Disk>(*process.disk);
  begin_process(process.site);
}

void World::relist(Rank site, const std::vector<Rank>& listed) {
  Slot& slot = slots_[static_cast<std::size_t>(site)];
  slot.listed = listed;
  Process* process = present(site);
  if (process == nullptr || !process->alive) {
    return;
  }
  audit_.begin_event(queue_.now(), site, "a change of its list");
  const std::vector<Rank> before = std::exchange(process->listed, listed);
  std::vector<ConnectionId> channels(listed.size(), kNoConnection);
  for (std::size_t i = 0; i < listed.size(); ++i) {
    const auto place = std::find(before.begin(), before.end(), listed[i]);
    if (place != before.end()) {
      channels[i] = process->channels[static_cast<std::size_t>(place - before.begin())];
    }
  }
  process->channels = std::move(channels);
  process->node->update_peers(peers_of(site, listed));
  audit_.relisted(*process, before);
  if (process->reachable) {
    wires_.relist(process->id, listed);
    flush(*process);
  }
}

void World::on_fault_over(const Active& active) {
  const PlannedFault& fault = faults_[active.fault];
  note(SimulatedSiteEvent::Kind::fault_over, active.site, -1,
       static_cast<std::uint64_t>(fault.kind));
  liveness_.disturb(active.site, queue_.now());
  for (const Rank peer : fault_kind(fault.kind).between ? active.peers : std::vector<Rank>()) {
    liveness_.disturb(peer, queue_.now());
  }
  switch (fault.kind) {
    case FaultKind::stop:
    case FaultKind::replace:
      resume(processes_[*active.process]);
      break;
    case FaultKind::one_way:
    case FaultKind::partition:
      for (const Rank peer : active.peers) {
        wires_.unblock(active.site, peer);
        if (fault.kind == FaultKind::partition) {
          wires_.unblock(peer, active.site);
        }
      }
      break;
    case FaultKind::slow:
      for (const Rank peer : active.peers) {
        wires_.set_link(active.site, peer, std::nullopt);
        wires_.set_link(peer, active.site, std::nullopt);
      }
      break;
    case FaultKind::forget: {
      std::vector<Rank> listed = slots_[static_cast<std::size_t>(active.site)].listed;
      for (const Rank peer : active.peers) {
        if (std::count(listed.begin(), listed.end(), peer) == 0) {
          listed.push_back(peer);
        }
      }
      relist(active.site, listed);
      break;
    }
    default:  // killed or gone: it comes back, unless it is there
      queue_.push({.time = queue_.now(),
                   .subject = static_cast<std::uint32_t>(active.site),
                   .kind = begin_due});
  }
}

void World::resume(Process& process) {
  if (!process.alive || !process.stopped) {
    return;
  }
  process.stopped = false;
  note(SimulatedSiteEvent::Kind::resumed, process.site);
  if (process.reachable) {
    wires_.resume(process.id);
  }
  // Its work waited; its clock did not.
  const bool works = process.phase == Phase::computing || process.phase == Phase::writing;
  const SimTime due = works ? later(process.due, queue_.now() - process.stopped_at)
                            : std::max(process.due, queue_.now());
  enter(process, process.phase, due - queue_.now());
  process.moved = queue_.now();
  drain(process);
}

}  // namespace sotto::sites
