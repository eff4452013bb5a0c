// What a RealRun does to its sites when a FaultSchedule injects a fault.
#include <sys/inotify.h>

#include <algorithm>
#include <csignal>
#include <utility>

#include "real_run.h"

namespace sotto::sitelab {

/// Injects a fault that waits for this moment of the site.
void RealRun::reach(Rank site, FaultMoment moment) {
  const Slot& own = slot(site);
  if (own.process && !own.leaving) {
    faults_.inject_due(site, own.seen.state.round, moment);
  }
}

std::optional<std::uint64_t> RealRun::process_of(Rank site) const {
  const Slot& own = slot(site);
  return own.process ? std::optional(own.number) : std::nullopt;
}

bool RealRun::leave(Rank site) {
  Slot& own = slot(site);
  // Before its first word it could not know what is asked of it.
  if (own.stopped || own.leaving || own.seen.process != own.number) {
    return false;
  }
  own.leaving = now();
  own.process->signal(SIGTERM);
  return true;
}

void RealRun::bring_back(Rank site) { begins_.push_back({.site = site, .at = now()}); }

void RealRun::on_injected(const PlannedFault& fault, Rank /*site*/,
                          const std::vector<Rank>& /*peers*/) {
  report_.whole = report_.whole && !fault_kind(fault.kind).loses;
}

void RealRun::end_after(SimTime lasting, std::size_t number) {
  ends_.push_back({.number = number, .at = plus(now(), lasting)});
}

void RealRun::expect_missed(Rank site, bool stopped) {
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

bool RealRun::kill(const PlannedFault& fault, Rank site) {
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

void RealRun::forget_state(Rank site) {
  int& watch = slot(site).home.watch;
  if (watch >= 0) {
    ::inotify_rm_watch(inotify_.get(), std::exchange(watch, -1));
  }
}

bool RealRun::stop(const PlannedFault& fault, Rank site) {
  Slot& own = slot(site);
  if (own.stopped || own.leaving) {
    return false;
  }
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
void RealRun::take_over(Rank site) {
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

void RealRun::relist(Rank site, std::vector<Rank> listed) {
  slot(site).listed = std::move(listed);
  write_peers(site);
}

void RealRun::resume(Rank site, std::uint64_t process) {
  Slot& own = slot(site);
  if (own.process && own.number == process) {
    own.process->signal(SIGCONT);
    own.stopped = false;
    own.moved = now();
  }
  for (Replaced& old : replaced_) {
    if (old.site == site && old.number == process) {
      old.process->signal(SIGCONT);
      old.stopped = false;
      old.holds = now() - old.since < 2 * plan_.silence;
    }
  }
}

}  // namespace sotto::sitelab
