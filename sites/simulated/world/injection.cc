// What a World does to its sites when a FaultSchedule injects a fault.
#include <algorithm>
#include <utility>

#include "world.h"

namespace sotto::sites {

/// Injects a fault that waits for this moment of the process; true when that was its end.
bool World::reach(Process& process, FaultMoment moment) {
  return !process.fenced && faults_.inject_due(process.site, process.state.round, moment) &&
         !process.alive;
}

std::optional<std::uint64_t> World::process_of(Rank site) const {
  const auto& id = slots_[static_cast<std::size_t>(site)].process;
  return id && processes_[*id].alive ? std::optional<std::uint64_t>(*id) : std::nullopt;
}

bool World::stop(const PlannedFault& fault, Rank site) {
  Process& process = *present(site);
  if (process.stopped) {
    return false;
  }
  process.stopped = true;
  process.stopped_at = queue_.now();
  if (process.reachable) {
    wires_.stop(process.id);
  }
  note(SimulatedSiteEvent::Kind::stopped, site);
  if (fault.kind == FaultKind::replace) {
    take_over(process);
  }
  return true;
}

bool World::leave(Rank site) {
  Process& process = *present(site);
  if (process.stopped || process.leaving) {
    return false;
  }
  process.leaving = true;
  return true;
}

void World::bring_back(Rank site) {
  queue_.push(
      {.time = queue_.now(), .subject = static_cast<std::uint32_t>(site), .kind = begin_due});
}

void World::on_injected(const PlannedFault& fault, Rank site, const std::vector<Rank>& peers) {
  const FaultKindInfo& kind = fault_kind(fault.kind);
  note(SimulatedSiteEvent::Kind::fault, site, kind.between && peers.size() == 1 ? peers[0] : -1,
       static_cast<std::uint64_t>(fault.kind));
  whole_ = whole_ && !kind.loses;
  if (kind.loses || kind.kind == FaultKind::replace) {
    slots_[static_cast<std::size_t>(site)].may_end = true;
  }
}

void World::on_over(const PlannedFault& fault, Rank site) {
  note(SimulatedSiteEvent::Kind::fault_over, site, -1, static_cast<std::uint64_t>(fault.kind));
}

void World::end_after(SimTime lasting, std::size_t number) {
  queue_.push({.time = plus(queue_.now(), lasting),
               .subject = static_cast<std::uint32_t>(number),
               .kind = fault_over});
}

bool World::kill(const PlannedFault& fault, Rank site) {
  Process& process = *present(site);
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
    disk.bare = disk.account();
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

void World::relist(Rank site, std::vector<Rank> listed) {
  Slot& slot = slots_[static_cast<std::size_t>(site)];
  slot.listed = std::move(listed);
  const std::vector<Rank>& peers = slot.listed;
  Process* process = present(site);
  if (process == nullptr || !process->alive) {
    return;
  }
  audit_.begin_event(queue_.now(), site, "a change of its list");
  const std::vector<Rank> before = std::exchange(process->listed, peers);
  std::vector<ConnectionId> channels(peers.size(), kNoConnection);
  for (std::size_t i = 0; i < peers.size(); ++i) {
    const auto place = std::find(before.begin(), before.end(), peers[i]);
    if (place != before.end()) {
      channels[i] = process->channels[static_cast<std::size_t>(place - before.begin())];
    }
  }
  process->channels = std::move(channels);
  process->node->update_peers(peers_of(site, peers));
  audit_.relisted(*process, before);
  if (process->reachable) {
    wires_.relist(process->id, peers);
    flush(*process);
  }
}

void World::resume(Rank /*site*/, std::uint64_t id) {
  Process& process = processes_[id];
  if (!process.alive || !process.stopped) {
    return;
  }
  process.stopped = false;
  note(SimulatedSiteEvent::Kind::resumed, process.site);
  if (process.reachable) {
    wires_.resume(process.id);
  }
  // While the process stood still its work did not go on, but the time of its deadlines passed.
  const bool works =
      process.phase == ProcessPhase::computing || process.phase == ProcessPhase::writing;
  const SimTime due = works ? plus(process.due, queue_.now() - process.stopped_at)
                            : std::max(process.due, queue_.now());
  enter(process, process.phase, due - queue_.now());
  process.moved = queue_.now();
  drain(process);
}

}  // namespace sotto::sites
