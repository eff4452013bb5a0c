// What befalls real sites. What sites/simulated/world/strikes.cc does in virtual time.
#include <sys/inotify.h>

#include <algorithm>
#include <csignal>
#include <utility>

#include "world.h"

namespace sotto::sitelab {
namespace {

/// How long until a process that is on its way out is looked at again.
constexpr SimTime kSoon = 100'000'000;

}  // namespace

/// From now on the fault may happen: at once, or when its sites are where it waits for them.
void World::arm(std::size_t fault) {
  const PlannedFault& planned = faults_[fault];
  for (const Rank site : planned.sites) {
    if (planned.round || planned.moment != FaultMoment::any) {
      slot(site).armed.push_back(fault);
    } else {
      strike(fault, site);
    }
  }
}

void World::strike_at(Rank site, FaultMoment moment) {
  Slot& own = slot(site);
  const auto due = std::find_if(own.armed.begin(), own.armed.end(), [&](std::size_t fault) {
    const PlannedFault& planned = faults_[fault];
    return planned.moment == moment && own.seen.state.round >= planned.round.value_or(0);
  });
  if (own.process && !own.leaving && due != own.armed.end()) {
    const std::size_t fault = *due;
    own.armed.erase(due);
    strike(fault, site);
  }
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
  Active active = {.fault = fault,
                   .site = site,
                   .process = slot(site).process ? slot(site).number : 0,
                   .peers = others(planned, site)};
  if (!happens(planned, site, active)) {
    return;
  }
  const FaultKindInfo& kind = fault_kind(planned.kind);
  if (planned.kind != FaultKind::partition || site == planned.sites.front()) {
    ++report_.injected[static_cast<std::size_t>(planned.kind)];
  }
  report_.whole = report_.whole && !kind.loses;
  disturb(site);
  for (const Rank peer : kind.between ? active.peers : std::vector<Rank>()) {
    disturb(peer);
  }
  if (kind.lasts && planned.lasting != kNever) {
    active.over = later(now(), planned.lasting);
    active_.push_back(std::move(active));
  }
}

/// Does what the fault does to one site; false when there is nothing to be done to.
bool World::happens(const PlannedFault& fault, Rank site, Active& active) {
  Slot& own = slot(site);
  switch (fault.kind) {
    case FaultKind::kill:
    case FaultKind::restore:
    case FaultKind::lose:
    case FaultKind::corrupt:
      return own.process && kills(fault, site);
    case FaultKind::stop:
    case FaultKind::replace:
      return own.process && !own.stopped && !own.leaving && stops(fault, site);
    case FaultKind::reset:
      return std::count_if(active.peers.begin(), active.peers.end(),
                           [&](Rank peer) { return relays_.reset(site, peer, fault.bytes); }) > 0;
    case FaultKind::one_way:
    case FaultKind::partition:
      for (const Rank peer : active.peers) {
        relays_.block(site, peer);
        if (fault.kind == FaultKind::partition) {
          relays_.block(peer, site);
        }
      }
      return true;
    case FaultKind::slow:
      for (const Rank peer : active.peers) {
        relays_.set_link(site, peer, fault.link);
        relays_.set_link(peer, site, fault.link);
      }
      return true;
    case FaultKind::forget: {
      std::vector<Rank> listed = own.listed;
      std::erase_if(active.peers,
                    [&](Rank rank) { return std::count(listed.begin(), listed.end(), rank) == 0; });
      std::erase_if(listed, [&](Rank rank) {
        return std::count(active.peers.begin(), active.peers.end(), rank) > 0;
      });
      relist(site, std::move(listed));
      return !active.peers.empty();
    }
    case FaultKind::clock:
      return false;  // refused beforehand
    case FaultKind::join:
      if (own.process) {
        return false;
      }
      begin_process(site);
      return true;
    case FaultKind::leave:
      // Before its first word it could not know what is asked of it.
      if (!own.process || own.stopped || own.leaving || own.seen.process != own.number) {
        return false;
      }
      own.leaving = now();
      own.process->signal(SIGTERM);
      return true;
  }
  return false;
}

void World::expect_missed(Rank site, bool stopped) {
  const Slot& own = slot(site);
  Gone gone = {.site = site, .at = now(), .stopped = stopped, .witnesses = {}};
  for (Rank peer = 0; peer < plan_.sites; ++peer) {
    const Slot& other = slot(peer);
    const auto place = std::find(other.seen.listed.begin(), other.seen.listed.end(), site);
    if (peer != site && other.process && !other.stopped && !other.leaving && own.process &&
        place != other.seen.listed.end() && relays_.open_both_ways(site, peer) &&
        other.seen.peers[static_cast<std::size_t>(place - other.seen.listed.begin())].up) {
      gone.witnesses.push_back(peer);
    }
  }
  gone_.push_back(std::move(gone));
}

bool World::kills(const PlannedFault& fault, Rank site) {
  Slot& own = slot(site);
  const bool talked = !own.stopped && !own.leaving && own.seen.process == own.number;
  own.process->signal(SIGKILL);
  if (talked && fault.kind == FaultKind::kill) {
    expect_missed(site, false);
  }
  own.process.reset();  // waits for its end
  own.leaving.reset();
  own.stopped = false;
  own.watch.follow(0, 0);
  look_at_states();
  if (fault.kind == FaultKind::kill) {
    return true;
  }
  const auto before = read_durable(plan_, *own.home.files, site);
  forget_state(site);
  if (fault.kind == FaultKind::lose) {
    own.home.files->lose();
  } else if (fault.kind == FaultKind::restore) {
    own.home.files->restore(fault.back);
  } else {
    own.home.files->corrupt();
  }
  const auto after = read_durable(plan_, *own.home.files, site);
  const auto made = [](const auto& read) {
    const sites::SiteState state =
        read.ok() && read->has_value() ? (*read)->state : sites::SiteState();
    return std::pair(state.minted, state.raised - state.lowered);
  };
  minted_before_[static_cast<std::size_t>(site)] += made(before).first - made(after).first;
  returned_before_ += made(before).second - made(after).second;
  return true;
}

void World::forget_state(Rank site) {
  int& watch = slot(site).home.watch;
  if (watch >= 0) {
    ::inotify_rm_watch(inotify_.get(), std::exchange(watch, -1));
  }
}

bool World::stops(const PlannedFault& fault, Rank site) {
  Slot& own = slot(site);
  own.process->signal(SIGSTOP);
  own.stopped = true;
  if (fault.kind == FaultKind::replace) {
    take_over(site);
  } else if (fault.lasting > plan_.silence && own.seen.process == own.number) {
    expect_missed(site, true);
  }
  return true;
}

/// Another process with the same key goes on from what is written, elsewhere; the old one keeps its
/// folder and its address, as a machine does that was cut off.
void World::take_over(Rank site) {
  Slot& own = slot(site);
  Home fresh = make_home(site, site_name(site) + "." + std::to_string(own.logs.size()));
  fresh.files->copy_state(*own.home.files);
  forget_state(site);
  replaced_.push_back({.site = site,
                       .home = std::exchange(own.home, std::move(fresh)),
                       .process = std::move(own.process),
                       .number = own.number,
                       .since = now()});
  own.logs.push_back(own.home.files->log());
  own.process.reset();
  write_peers(site);
  relays_.lead_to(site, own.home.port);
  begin_process(site);
}

void World::relist(Rank site, std::vector<Rank> listed) {
  slot(site).listed = std::move(listed);
  write_peers(site);
}

void World::over(const Active& active) {
  if (active.fault == faults_.size()) {
    begin_process(active.site);
    return;
  }
  const PlannedFault& fault = faults_[active.fault];
  disturb(active.site);
  for (const Rank peer : fault_kind(fault.kind).between ? active.peers : std::vector<Rank>()) {
    disturb(peer);
  }
  switch (fault.kind) {
    case FaultKind::stop:
    case FaultKind::replace:
      resume(active);
      break;
    case FaultKind::one_way:
    case FaultKind::partition:
      for (const Rank peer : active.peers) {
        relays_.unblock(active.site, peer);
        if (fault.kind == FaultKind::partition) {
          relays_.unblock(peer, active.site);
        }
      }
      break;
    case FaultKind::slow:
      for (const Rank peer : active.peers) {
        relays_.set_link(active.site, peer, std::nullopt);
        relays_.set_link(peer, active.site, std::nullopt);
      }
      break;
    case FaultKind::forget: {
      std::vector<Rank> listed = slot(active.site).listed;
      for (const Rank peer : active.peers) {
        if (std::count(listed.begin(), listed.end(), peer) == 0) {
          listed.push_back(peer);
        }
      }
      relist(active.site, std::move(listed));
      break;
    }
    default:  // killed or gone: it comes back, unless it is there
      if (slot(active.site).process && slot(active.site).leaving) {
        Active again = active;
        again.over = now() + kSoon;
        active_.push_back(std::move(again));
      } else {
        begin_process(active.site);
      }
  }
}

void World::resume(const Active& active) {
  Slot& own = slot(active.site);
  if (own.process && own.number == active.process) {
    own.process->signal(SIGCONT);
    own.stopped = false;
    own.moved = now();
  }
  for (Replaced& old : replaced_) {
    if (old.site == active.site && old.number == active.process) {
      old.process->signal(SIGCONT);
      old.stopped = false;
      old.holds = now() - old.since < 2 * plan_.silence;
    }
  }
}

}  // namespace sotto::sitelab
