#include "real_injection.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "durable_site.h"

namespace sotto::sitelab {
namespace {

/// What a state has minted, and what it has given back of that; nothing where there is none.
std::pair<double, double> made_by(const Result<std::optional<DurableSite>>& found) {
  const bool there = found.ok() && found->has_value();
  const sites::SiteState state = there ? (*found)->state : sites::SiteState();
  return {state.minted, state.raised - state.lowered};
}

}  // namespace

RealInjection::RealInjection(const FaultPlan& plan, std::uint64_t seed, const RunClock& clock,
                             RealFleet& fleet)
    : plan_(plan), clock_(clock), fleet_(fleet), states_(plan.sites), faults_(plan, seed, *this) {}

void RealInjection::inject_and_end() {
  const SimTime moment = clock_.now();
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
    if (begin.at > moment || fleet_.at(begin.site).leaving()) {
      begins_.push_back(begin);
    } else {
      begin_process(begin.site);
    }
  }
}

void RealInjection::look_at_states() {
  states_.tell([&](Rank site, StateWatch::Change change, std::string_view name) {
    if (change == StateWatch::Change::begun) {
      reach(site, FaultMoment::before_commit);
    } else {
      fleet_.at(site).files().keep_state(name);
      reach(site, FaultMoment::before_release);
    }
  });
  for (Rank site = 0; site < plan_.sites; ++site) {
    if (const RealSite& own = fleet_.at(site); own.runs()) {
      states_.follow(site, own.files().state());
    }
  }
}

/// Injects a fault that waits for this moment of the site.
void RealInjection::reach(Rank site, FaultMoment moment) {
  const RealSite& own = fleet_.at(site);
  if (own.runs() && !own.leaving()) {
    faults_.inject_due(site, own.seen().state.round, moment);
  }
}

std::optional<std::uint64_t> RealInjection::process_of(Rank site) const {
  const RealSite& own = fleet_.at(site);
  return own.runs() ? std::optional(own.number()) : std::nullopt;
}

bool RealInjection::leave(Rank site) {
  RealSite& own = fleet_.at(site);
  // Before its first word it could not know what is asked of it.
  if (!own.at_work() || !own.has_answered()) {
    return false;
  }
  own.leave(clock_.now());
  return true;
}

void RealInjection::on_injected(const PlannedFault& fault, Rank /*site*/,
                                const std::vector<Rank>& /*peers*/) {
  lost_.any = lost_.any || fault_kind(fault.kind).loses;
}

void RealInjection::end_after(SimTime lasting, std::size_t number) {
  ends_.push_back({.number = number, .at = plus(clock_.now(), lasting)});
}

void RealInjection::expect_missed(Rank site, bool stopped) {
  MissedProcess gone = {.site = site, .at = clock_.now(), .stopped = stopped, .witnesses = {}};
  for (Rank peer = 0; peer < plan_.sites; ++peer) {
    const RealSite& other = fleet_.at(peer);
    const SiteStatus& seen = other.seen();
    const auto place = std::ranges::find(seen.listed, site);
    if (peer != site && other.at_work() && place != seen.listed.end() &&
        fleet_.relays().open_both_ways(site, peer) &&
        seen.peers[static_cast<std::size_t>(place - seen.listed.begin())].up) {
      gone.witnesses.push_back(peer);
    }
  }
  missed_.push_back(std::move(gone));
}

bool RealInjection::kill(const PlannedFault& fault, Rank site) {
  RealSite& own = fleet_.at(site);
  const bool only_kill = fault.kind == FaultKind::kill;
  if (only_kill && own.at_work() && own.has_answered()) {
    expect_missed(site, false);
  }
  own.kill();
  look_at_states();
  if (!only_kill) {
    change_state(fault, site);
  }
  return true;
}

void RealInjection::change_state(const PlannedFault& fault, Rank site) {
  SiteFiles& files = fleet_.at(site).files();
  const auto before = made_by(read_durable(plan_, files, site));
  states_.forget(site);
  if (fault.kind == FaultKind::lose) {
    files.lose();
  } else if (fault.kind == FaultKind::restore) {
    files.restore(fault.back);
  } else {
    files.corrupt();
  }
  const auto after = made_by(read_durable(plan_, files, site));
  lost_.minted += before.first - after.first;
  lost_.returned += before.second - after.second;
}

bool RealInjection::stop(const PlannedFault& fault, Rank site) {
  RealSite& own = fleet_.at(site);
  if (own.stopped() || own.leaving()) {
    return false;
  }
  own.stop();
  if (fault.kind == FaultKind::replace) {
    states_.forget(site);
    fleet_.take_over(site, clock_.now());
    begin_process(site);
  } else if (fault.lasting > plan_.silence && own.has_answered()) {
    expect_missed(site, true);
  }
  return true;
}

}  // namespace sotto::sitelab
