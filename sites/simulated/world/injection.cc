#include "injection.h"

#include <algorithm>
#include <utility>

#include "places.h"

namespace sotto::sites {

Injection::Injection(WorldState& state, RoundPlayer& rounds, ProcessTalk& talk,
                     ProcessStarter& starter)
    : state_(state),
      rounds_(rounds),
      talk_(talk),
      starter_(starter),
      faults_(state.plan, state.options.seed, *this) {}

bool Injection::reach(Process& process, FaultMoment moment) {
  return !process.fenced && faults_.inject_due(process.site, process.seen.state.round, moment) &&
         !process.alive;
}

std::optional<std::uint64_t> Injection::process_of(Rank site) const {
  const Process* process = state_.living(site);
  return process != nullptr ? std::optional<std::uint64_t>(process->id) : std::nullopt;
}

bool Injection::stop(const PlannedFault& fault, Rank site) {
  Process& process = *state_.living(site);
  if (process.stopped) {
    return false;
  }
  process.stopped = true;
  process.stopped_at = state_.now();
  if (process.reachable) {
    state_.wires.stop(process.id);
  }
  state_.note(SimulatedSiteEvent::Kind::stopped, site);
  if (fault.kind == FaultKind::replace) {
    take_over(process);
  }
  return true;
}

bool Injection::leave(Rank site) {
  Process& process = *state_.living(site);
  if (process.stopped || process.leaving) {
    return false;
  }
  process.leaving = true;
  return true;
}

void Injection::bring_back(Rank site) {
  state_.push(WorldEvent::begin_due, state_.now(), static_cast<std::uint32_t>(site));
}

void Injection::on_injected(const PlannedFault& fault, Rank site, const std::vector<Rank>& peers) {
  const FaultKindInfo& kind = fault_kind(fault.kind);
  state_.note(SimulatedSiteEvent::Kind::fault, site,
              kind.between && peers.size() == 1 ? peers[0] : -1,
              static_cast<std::uint64_t>(fault.kind));
  state_.whole = state_.whole && !kind.loses;
  if (kind.loses || kind.kind == FaultKind::replace) {
    state_.slot(site).may_end = true;
  }
}

void Injection::on_over(const PlannedFault& fault, Rank site) {
  state_.note(SimulatedSiteEvent::Kind::fault_over, site, -1,
              static_cast<std::uint64_t>(fault.kind));
}

void Injection::end_after(SimTime lasting, std::size_t number) {
  state_.push(WorldEvent::fault_over, plus(state_.now(), lasting),
              static_cast<std::uint32_t>(number));
}

bool Injection::kill(const PlannedFault& fault, Rank site) {
  Process& process = *state_.living(site);
  Disk& disk = *process.disk;
  if (fault.kind == FaultKind::corrupt && disk.commits.empty()) {
    return false;
  }
  state_.end_process(process, false);
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
void Injection::take_over(Process& process) {
  process.fenced = true;
  process.alone_until = state_.now();
  process.disk = std::make_shared<Disk>(*process.disk);
  starter_.begin(process.site);
}

void Injection::relist(Rank site, std::vector<Rank> listed) {
  Slot& slot = state_.slot(site);
  slot.listed = std::move(listed);
  const std::vector<Rank>& peers = slot.listed;
  Process* process = state_.living(site);
  if (process == nullptr) {
    return;
  }
  state_.begin_event(site, "a change of its list");
  const std::vector<Rank> before = std::exchange(process->listed, peers);
  std::vector<WireId> channels(peers.size(), kNoWire);
  for (std::size_t i = 0; i < peers.size(); ++i) {
    if (const auto place = place_of(peers[i], before)) {
      channels[i] = process->channels[*place];
    }
  }
  process->channels = std::move(channels);
  process->node->update_peers(state_.peers_of(site, peers));
  state_.audit.relisted(*process, before);
  if (process->reachable) {
    state_.wires.relist(process->id, peers);
    talk_.flush(*process);
  }
}

void Injection::resume(Rank /*site*/, std::uint64_t id) {
  Process& process = state_.processes[id];
  if (!process.alive || !process.stopped) {
    return;
  }
  process.stopped = false;
  state_.note(SimulatedSiteEvent::Kind::resumed, process.site);
  if (process.reachable) {
    state_.wires.resume(process.id);
  }
  // While the process stood still its work did not go on, but the time of its deadlines passed.
  const bool works =
      process.phase == ProcessPhase::computing || process.phase == ProcessPhase::writing;
  const SimTime due = works ? plus(process.due, state_.now() - process.stopped_at)
                            : std::max(process.due, state_.now());
  rounds_.enter(process, process.phase, due - state_.now());
  process.moved = state_.now();
  talk_.drain(process);
}

}  // namespace sotto::sites
