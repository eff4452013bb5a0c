#include "mass_audit.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "places.h"

namespace sotto::sites {
namespace {

/// Masses may differ by so much, and by this part of what went in and out.
constexpr double kTolerance = 1e-9;
constexpr double kRounding = 1e-12;

}  // namespace

MassAudit::MassAudit(const FaultPlan& plan, FirstViolation& violation)
    : plan_(plan), violation_(violation), has_mass_(plan.exchange == MixingKind::push_sum) {}

void MassAudit::began_anew(Process& process) {
  SeenSite& seen = process.seen;
  seen.account = process.disk->account();
  seen.account.incarnation = seen.state.incarnation;
  seen.account.mass = seen.state.mass;
  seen.account.minted += seen.state.minted;
  expect(process, seen.state.minted, "its beginning");
  balance(process);
}

void MassAudit::went_on(Process& process) {
  const Commit& commit = process.disk->commits.back();
  process.seen.account = commit.account;
  write_off(process, commit.listed, commit.peers);
  balance(process);
}

void MassAudit::heard(Process& process, const SaidState& before) {
  renew(process, before);
  take_handed(process, before);
  drop_arrivals(process, before);
  SeenSite& seen = process.seen;
  const double minted = seen.state.minted - before.state.minted;
  if (has_mass_ && minted != 0 && (minted != 1 || seen.account.mass != 0)) {
    violation_.fail(fmt::format("mints {} on top of {}", minted, seen.account.mass));
  }
  expect(process, seen.account.mass + minted, "an event that moves none");
  seen.account.mass = seen.state.mass;
  seen.account.minted += minted;
  balance(process);
}

void MassAudit::stepped(const Process& process, const SaidState& before) {
  expect(process, before.state.mass, "a step");
}

void MassAudit::offered(Process& process, const SaidState& before) {
  SeenSite& seen = process.seen;
  double made = 0;
  for (std::size_t i = 0; i < seen.peers.size(); ++i) {
    if (seen.peers[i].sent != before.peers[i].sent) {
      made += give_parcels(process, i, before.peers[i]);
    }
  }
  expect(process, seen.account.mass - made, "making parcels");
  seen.account.mass = seen.state.mass;
  balance(process);
}

/// The mass of what it made for the peer at this place.
double MassAudit::give_parcels(Process& process, std::size_t place, const PeerState& before) {
  const PeerState& now = process.seen.peers[place];
  const Sequence count = now.sent - before.sent;
  PeerAccount& account = process.account_with(place);
  const double mass = now.given - before.given;
  if (count > 1 || (has_mass_ && !(mass > 0))) {
    violation_.fail(fmt::format("makes {} parcels with a mass of {} for site {}", count, mass,
                                process.listed[place]));
  }
  if (account.stream == 0) {
    account.stream = ++last_stream_;
    account.to = now.incarnation;
  }
  account.made += mass;
  account.recent.push_back({process.seen.state.incarnation, now.sent, account.stream, mass});
  while (account.recent.size() > 4 * plan_.window + 4) {
    account.recent.pop_front();
  }
  return mass;
}

bool MassAudit::collected(Process& process, const SaidState& before) {
  renew(process, before);
  SeenSite& seen = process.seen;
  double taken = 0;
  for (std::size_t i = 0; i < seen.peers.size(); ++i) {
    const std::optional<double> of_peer = take_parcels(process, i, before.peers[i]);
    if (!of_peer) {
      return false;
    }
    taken += *of_peer;
  }
  const double returned = returned_since(process, before);
  expect(process, seen.account.mass + taken + returned, "taking parcels in");
  seen.account.mass = seen.state.mass;
  seen.account.returned += returned;
  balance(process);
  return true;
}

/// The mass of what it took in from the peer at this place; nothing for what never came.
std::optional<double> MassAudit::take_parcels(Process& process, std::size_t place,
                                              const PeerState& before) {
  const std::size_t rank = process.site_at(place);
  const PeerState& now = process.seen.peers[place];
  PeerAccount& account = process.account_with(place);
  std::map<Sequence, TakenParcel>& arrivals = process.seen.arrivals[rank];
  double mass = 0;
  for (Sequence s = before.applied + 1; s <= now.applied; ++s) {
    const auto found = arrivals.find(s);
    if (found == arrivals.end() && s < process.seen.resumes[rank]) {
      continue;
    }
    if (found == arrivals.end()) {
      violation_.fail(fmt::format("applies parcel {} of site {}, which never came", s, rank));
      return std::nullopt;
    }
    const TakenParcel& arrival = found->second;
    mass += arrival.mass;
    if (account.heard != arrival.stream) {
      account.applied_before += account.applied;
      account.applied = 0;
      account.heard = arrival.stream;
    }
    account.applied += arrival.mass;
    arrivals.erase(found);
  }
  const double taken = now.taken - before.taken;
  if (has_mass_ && mass != 0 && !(std::abs(taken - mass) <= kTolerance)) {
    violation_.fail(fmt::format("takes {} of mass from site {} that gave {}", taken, rank, mass));
  }
  return mass;
}

/// What a site made or took away of mass. It may, as its model stays; but it counts it, and ends
/// within bounds.
double MassAudit::returned_since(const Process& process, const SaidState& before) {
  const SiteState& now = process.seen.state;
  const double raised = now.raised - before.state.raised;
  const double lowered = now.lowered - before.state.lowered;
  const MassRule rule;
  if (has_mass_ && !(raised >= 0 && lowered >= 0)) {
    violation_.fail(fmt::format("has raised its mass by {} and lowered it by {}", raised, lowered));
  }
  if (has_mass_ && now.mass > 0 &&
      !(now.mass >= rule.least - kTolerance && now.mass <= rule.most + kTolerance)) {
    violation_.fail(fmt::format("ends a round with a mass of {}, outside {} … {}", now.mass,
                                rule.least, rule.most));
  }
  return raised - lowered;
}

void MassAudit::relisted(Process& process, const std::vector<Rank>& listed,
                         const SaidState& before) {
  write_off(process, listed, before.peers);
  expect(process, process.seen.account.mass, "a change of its list");
  balance(process);
}

// What the accounts say.

/// What a new incarnation, of this site or of a peer, means for the accounts.
void MassAudit::renew(Process& process, const SaidState& before) {
  close_streams(process, before);
  if (process.seen.state.incarnation == before.state.incarnation) {
    return;
  }
  ++resets_;
  process.seen.account.given_up += process.seen.account.mass;
  process.seen.account.mass = 0;
  process.seen.account.incarnation = process.seen.state.incarnation;
}

/// Streams end when either incarnation does, as this site sees it.
void MassAudit::close_streams(Process& process, const SaidState& before) {
  for (std::size_t i = 0; i < process.seen.peers.size(); ++i) {
    const bool renewed = process.seen.state.incarnation != before.state.incarnation ||
                         process.seen.peers[i].incarnation != before.peers[i].incarnation ||
                         process.seen.peers[i].sent < before.peers[i].sent;
    if (renewed) {
      process.seen.account.close_stream(process.site_at(i));
      process.account_with(i).written_off = 0;
      process.seen.arrivals[process.site_at(i)].clear();
    }
  }
}

/// Writes off what peers that have left the list have not got, and never will.
void MassAudit::write_off(Process& process, const std::vector<Rank>& listed,
                          const std::vector<PeerState>& peers) {
  for (std::size_t i = 0; i < listed.size(); ++i) {
    const auto rank = static_cast<std::size_t>(listed[i]);
    if (!place_of(listed[i], process.listed)) {
      process.seen.account.close_stream(rank);
      process.seen.account.peers[rank].written_off = peers[i].sent;
      process.seen.arrivals[rank].clear();
    }
  }
}

/// A parcel that was handed over is kept, or was of no use.
void MassAudit::take_handed(Process& process, const SaidState& before) {
  if (!process.seen.handed) {
    return;
  }
  const Handed handed = *std::exchange(process.seen.handed, std::nullopt);
  const std::size_t place = *place_of(handed.from, process.listed);
  if (process.seen.peers[place].pending <= before.peers[place].pending) {
    return;
  }
  process.seen.arrivals[static_cast<std::size_t>(handed.from)][handed.sequence] = handed.arrival;
  const PeerState& known = process.seen.peers[place];
  if (handed.incarnation != known.incarnation || handed.life < known.life) {
    violation_.fail(
        fmt::format("takes a parcel of a process of site {} that was replaced", handed.from));
  }
}

/// What a peer has written off goes, also where it has come.
void MassAudit::drop_arrivals(Process& process, const SaidState& before) {
  for (std::size_t i = 0; i < process.seen.peers.size(); ++i) {
    const std::size_t rank = process.site_at(i);
    if (process.seen.peers[i].pending < before.peers[i].pending) {
      auto& arrivals = process.seen.arrivals[rank];
      arrivals.erase(arrivals.begin(), arrivals.lower_bound(process.seen.resumes[rank]));
    }
  }
}

void MassAudit::expect(const Process& process, double mass, const char* after) {
  if (has_mass_ && !(std::abs(process.seen.state.mass - mass) <= kTolerance)) {
    violation_.fail(fmt::format("holds a mass of {:.12g} after {}, and it should be {:.12g}",
                                process.seen.state.mass, after, mass));
  }
}

void MassAudit::balance(const Process& process) {
  if (!has_mass_) {
    return;
  }
  if (!std::isfinite(process.seen.state.mass) || process.seen.state.mass < 0) {
    violation_.fail(fmt::format("holds a mass of {}", process.seen.state.mass));
  }
  const double error = std::abs(process.seen.account.imbalance());
  worst_error_ = std::max(worst_error_, error);
  if (!(error <= kTolerance + kRounding * process.seen.account.turnover())) {
    violation_.fail(
        fmt::format("its account is out of balance by {:.3g}", process.seen.account.imbalance()));
  }
}

void MassAudit::check_total(std::span<const MassAccount* const> accounts, bool whole) {
  if (!has_mass_) {
    return;
  }
  minted_ = 0;
  for (const MassAccount* account : accounts) {
    minted_ += account->minted;
  }
  lost_ = lost_mass(accounts);
  if (whole) {
    worst_error_ = std::max(worst_error_, std::abs(lost_));
    double turnover = 0;
    for (const MassAccount* account : accounts) {
      turnover += account->turnover();
    }
    if (!(std::abs(lost_) <= kTolerance + kRounding * turnover)) {
      violation_.fail(
          fmt::format("{:.12g} of the mass is gone although every state is there", lost_));
    }
  }
}

void MassAudit::report(SimulatedSitesReport& report) const {
  report.resets = resets_;
  report.worst_mass_error = worst_error_;
  report.minted = minted_;
  report.lost = lost_;
}

}  // namespace sotto::sites
