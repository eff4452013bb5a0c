#include "real_injection.h"

#include <algorithm>
#include <csignal>
#include <string_view>
#include <utility>

namespace sotto::sitelab {

RealInjection::RealInjection(RunState& state)
    : state_(state), faults_(state.plan, state.options.seed, *this) {}

void RealInjection::inject_and_end() {
  const SimTime moment = state_.now();
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
    if (begin.at > moment || state_.fleet.at(begin.site).leaving) {
      begins_.push_back(begin);
    } else {
      state_.begin_process(begin.site);
    }
  }
}

void RealInjection::look_at_states() {
  state_.states.tell([&](Rank site, StateWatch::Change change, std::string_view name) {
    if (change == StateWatch::Change::begun) {
      reach(site, FaultMoment::before_commit);
    } else {
      state_.fleet.at(site).home.files->keep_state(name);
      reach(site, FaultMoment::before_release);
    }
  });
  for (Rank site = 0; site < state_.plan.sites; ++site) {
    if (const RealSite& own = state_.fleet.at(site); own.process) {
      state_.states.follow(site, own.home.files->state());
    }
  }
}

/// Injects a fault that waits for this moment of the site.
void RealInjection::reach(Rank site, FaultMoment moment) {
  const RealSite& own = state_.fleet.at(site);
  if (own.process && !own.leaving) {
    faults_.inject_due(site, own.seen.state.round, moment);
  }
}

std::optional<std::uint64_t> RealInjection::process_of(Rank site) const {
  const RealSite& own = state_.fleet.at(site);
  return own.process ? std::optional(own.number) : std::nullopt;
}

bool RealInjection::leave(Rank site) {
  RealSite& own = state_.fleet.at(site);
  // Before its first word it could not know what is asked of it.
  if (own.stopped || own.leaving || !own.has_answered()) {
    return false;
  }
  own.leaving = state_.now();
  own.process->signal(SIGTERM);
  return true;
}

void RealInjection::on_injected(const PlannedFault& fault, Rank /*site*/,
                                const std::vector<Rank>& /*peers*/) {
  state_.report.whole = state_.report.whole && !fault_kind(fault.kind).loses;
}

void RealInjection::end_after(SimTime lasting, std::size_t number) {
  ends_.push_back({.number = number, .at = plus(state_.now(), lasting)});
}

void RealInjection::expect_missed(Rank site, bool stopped) {
  const RealSite& own = state_.fleet.at(site);
  MissedProcess gone = {.site = site, .at = state_.now(), .stopped = stopped, .witnesses = {}};
  for (Rank peer = 0; peer < state_.plan.sites; ++peer) {
    const RealSite& other = state_.fleet.at(peer);
    const auto place = std::find(other.seen.listed.begin(), other.seen.listed.end(), site);
    if (peer != site && other.process && !other.stopped && !other.leaving && own.process &&
        place != other.seen.listed.end() && state_.fleet.relays().open_both_ways(site, peer) &&
        other.seen.peers[static_cast<std::size_t>(place - other.seen.listed.begin())].up) {
      gone.witnesses.push_back(peer);
    }
  }
  state_.audit.expect_missed(std::move(gone));
}

bool RealInjection::kill(const PlannedFault& fault, Rank site) {
  RealSite& own = state_.fleet.at(site);
  const bool talked = !own.stopped && !own.leaving && own.has_answered();
  if (talked && fault.kind == FaultKind::kill) {
    expect_missed(site, false);
  }
  state_.fleet.kill(site);
  look_at_states();
  if (fault.kind == FaultKind::kill) {
    return true;
  }
  const auto before = read_durable(state_.plan, *own.home.files, site);
  state_.states.forget(site);
  if (fault.kind == FaultKind::lose) {
    own.home.files->lose();
  } else if (fault.kind == FaultKind::restore) {
    own.home.files->restore(fault.back);
  } else {
    own.home.files->corrupt();
  }
  state_.audit.state_changed(before, read_durable(state_.plan, *own.home.files, site));
  return true;
}

bool RealInjection::stop(const PlannedFault& fault, Rank site) {
  RealSite& own = state_.fleet.at(site);
  if (own.stopped || own.leaving) {
    return false;
  }
  state_.fleet.stop(site);
  if (fault.kind == FaultKind::replace) {
    state_.states.forget(site);
    state_.fleet.take_over(site, state_.now());
    begin_process(site);
  } else if (fault.lasting > state_.plan.silence && own.has_answered()) {
    expect_missed(site, true);
  }
  return true;
}

}  // namespace sotto::sitelab
