// What a RealRun does to its sites when a FaultSchedule injects a fault.
#include <algorithm>
#include <csignal>
#include <utility>

#include "real_run.h"

namespace sotto::sitelab {

/// Injects the faults whose time has come, and ends those whose time has passed.
void RealRun::inject_and_end() {
  const SimTime moment = now();
  while (next_fault_ < faults_.faults().size() && faults_.faults()[next_fault_].at <= moment) {
    faults_.begin(next_fault_++);
  }
  for (const End& end : std::exchange(ends_, {})) {
    if (end.at <= moment) {
      faults_.end(end.number);
    } else {
      ends_.push_back(end);
    }
  }
  for (const Begin& begin : std::exchange(begins_, {})) {
    // A process that is told to leave ends first.
    if (begin.at > moment || fleet_.at(begin.site).leaving) {
      begins_.push_back(begin);
    } else {
      begin_process(begin.site);
    }
  }
}

/// Injects a fault that waits for this moment of the site.
void RealRun::reach(Rank site, FaultMoment moment) {
  const RealSite& own = fleet_.at(site);
  if (own.process && !own.leaving) {
    faults_.inject_due(site, own.seen.state.round, moment);
  }
}

std::optional<std::uint64_t> RealRun::process_of(Rank site) const {
  const RealSite& own = fleet_.at(site);
  return own.process ? std::optional(own.number) : std::nullopt;
}

bool RealRun::leave(Rank site) {
  RealSite& own = fleet_.at(site);
  // Before its first word it could not know what is asked of it.
  if (own.stopped || own.leaving || !own.has_answered()) {
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
  const RealSite& own = fleet_.at(site);
  MissedProcess gone = {.site = site, .at = now(), .stopped = stopped, .witnesses = {}};
  for (Rank peer = 0; peer < plan_.sites; ++peer) {
    const RealSite& other = fleet_.at(peer);
    const auto place = std::find(other.seen.listed.begin(), other.seen.listed.end(), site);
    if (peer != site && other.process && !other.stopped && !other.leaving && own.process &&
        place != other.seen.listed.end() && fleet_.relays().open_both_ways(site, peer) &&
        other.seen.peers[static_cast<std::size_t>(place - other.seen.listed.begin())].up) {
      gone.witnesses.push_back(peer);
    }
  }
  audit_.expect_missed(std::move(gone));
}

bool RealRun::kill(const PlannedFault& fault, Rank site) {
  RealSite& own = fleet_.at(site);
  const bool talked = !own.stopped && !own.leaving && own.has_answered();
  if (talked && fault.kind == FaultKind::kill) {
    expect_missed(site, false);
  }
  fleet_.kill(site);
  look_at_states();
  if (fault.kind == FaultKind::kill) {
    return true;
  }
  const auto before = read_durable(plan_, *own.home.files, site);
  states_.forget(site);
  if (fault.kind == FaultKind::lose) {
    own.home.files->lose();
  } else if (fault.kind == FaultKind::restore) {
    own.home.files->restore(fault.back);
  } else {
    own.home.files->corrupt();
  }
  audit_.state_changed(before, read_durable(plan_, *own.home.files, site));
  return true;
}

bool RealRun::stop(const PlannedFault& fault, Rank site) {
  RealSite& own = fleet_.at(site);
  if (own.stopped || own.leaving) {
    return false;
  }
  fleet_.stop(site);
  if (fault.kind == FaultKind::replace) {
    states_.forget(site);
    fleet_.take_over(site, now());
    begin_process(site);
  } else if (fault.lasting > plan_.silence && own.has_answered()) {
    expect_missed(site, true);
  }
  return true;
}

}  // namespace sotto::sitelab
