#include "run_audit.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

namespace sotto::sitelab {
namespace {

constexpr double kTolerance = 1e-9;
/// A line of a log may carry a time that is a little earlier than what it tells of.
constexpr double kClockError = 0.05;
/// A process that is killed should be missed within so long, in seconds.
constexpr double kKillNoticed = 2;

}  // namespace

RunAudit::RunAudit(const FaultPlan& plan, double unix_start, Fail fail)
    : plan_(plan), unix_start_(unix_start), fail_(std::move(fail)) {}

void RunAudit::finish(const RealFleet& fleet, const RealInjection& injection, RealNaming& naming,
                      RealReport& report) const {
  const std::vector<DurableSite> durable = read_states(fleet, report);
  judge(durable, report);
  const Logs logs = read_logs(fleet, report);
  name_liars(fleet, logs, naming, report);
  for (const MissedProcess& gone : injection.missed()) {
    measure(gone, fleet, logs, report);
  }
  for (Detections* seen : {&report.killed, &report.stopped}) {
    std::ranges::sort(seen->seconds);
  }
  if (plan_.exchange == sites::MixingKind::push_sum) {
    weigh(durable, injection.lost_states(), report);
  }
}

std::vector<DurableSite> RunAudit::read_states(const RealFleet& fleet, RealReport& report) const {
  std::vector<DurableSite> durable;
  for (Rank site = 0; site < plan_.sites; ++site) {
    if (fleet.lies(site)) {
      continue;
    }
    auto found = read_durable(plan_, fleet.at(site).files(), site);
    if (!found.ok()) {
      fail_(site, "the end of the run", fmt::format("its state: {}", found.status().message()));
    } else if (found->has_value()) {
      durable.push_back(std::move(**found));
    }
  }
  for (const DurableSite& site : durable) {
    const bool first = &site == &durable.front();
    report.rounds_least =
        first ? site.state.round : std::min(report.rounds_least, site.state.round);
    report.rounds_most = std::max(report.rounds_most, site.state.round);
    report.largest_state = std::max(report.largest_state, site.bytes);
  }
  return durable;
}

/// How far the honest sites have come, and how good their models are.
void RunAudit::judge(const std::vector<DurableSite>& durable, RealReport& report) const {
  SiteJudge judge(plan_);
  report.outcomes.resize(static_cast<std::size_t>(plan_.sites));
  for (const DurableSite& site : durable) {
    report.outcomes[static_cast<std::size_t>(site.site)] = {
        .round = site.state.round, .accuracy = judge.accuracy(site.parameters)};
  }
}

/// Whether the mass that was made is there.
void RunAudit::weigh(const std::vector<DurableSite>& durable, const LostStates& lost,
                     RealReport& report) const {
  MassAudit& mass = report.mass = audit_mass(durable, plan_.sites);
  mass.minted += lost.minted;
  mass.lost += lost.minted + lost.returned;
  const double tolerance = kTolerance * std::max(1.0, mass.minted);
  if (!plan_.lies.empty()) {
    // What liars hold, or say that they give, is nobody's. Sites take away again what is minted.
    if (report.whole && mass.worst_error > std::max(tolerance, kTolerance * -mass.returned)) {
      fail_(-1, "the audit",
            fmt::format("the accounts of a site are out of balance by {:.3g}", mass.worst_error));
    }
    return;
  }
  if (report.whole && !(std::abs(mass.lost) <= tolerance && mass.worst_error <= tolerance)) {
    fail_(-1, "the audit",
          fmt::format(
              "of a mass of {} {:.3g} is gone although every state is there, and the accounts "
              "of a site are out of balance by {:.3g}",
              mass.minted, mass.lost, mass.worst_error));
  } else if (!(mass.lost >= -tolerance)) {
    fail_(-1, "the audit", fmt::format("{:.3g} more mass is there than was minted", -mass.lost));
  }
}

RunAudit::Logs RunAudit::read_logs(const RealFleet& fleet, RealReport& report) const {
  Logs logs(fleet.size());
  for (Rank site = 0; site < plan_.sites; ++site) {
    std::vector<LogEntry>& log = logs[static_cast<std::size_t>(site)];
    for (const std::string& path : fleet.at(site).logs()) {
      const std::vector<LogEntry> more = read_log(path);
      log.insert(log.end(), more.begin(), more.end());
    }
    for (const LogEntry& entry : log) {
      report.resets += static_cast<std::uint64_t>(entry.event == "state-given-up");
      if (entry.event == "peer-offence" && !fleet.lies(entry.peer)) {
        ++report.offences;
        fail_(site, "a round", "accuses an honest site: " + entry.text);
      }
    }
  }
  return logs;
}

void RunAudit::name_liars(const RealFleet& fleet, const Logs& logs, RealNaming& naming,
                          RealReport& report) {
  std::vector<std::vector<Rank>> near;
  for (std::size_t k = 0; k < logs.size(); ++k) {
    const auto site = static_cast<Rank>(k);
    near.push_back(fleet.neighbours(site));
    if (!fleet.lies(site)) {
      naming.see_log(site, logs[k]);
    }
  }
  report.named = naming.named(near);
  report.honest_accused = naming.honest_accused();
}

/// How soon each witness logged that the process was gone. A witness that was itself disturbed
/// meanwhile does not count.
void RunAudit::measure(const MissedProcess& gone, const RealFleet& fleet, const Logs& logs,
                       RealReport& report) const {
  const double at = unix_start_ + to_seconds(gone.at);
  const double limit = kKillNoticed + (gone.stopped ? to_seconds(plan_.silence) : 0);
  Detections& seen = gone.stopped ? report.stopped : report.killed;
  for (const Rank witness : gone.witnesses) {
    const auto& struck = fleet.at(witness).disturbed();
    const bool busy = std::any_of(struck.begin(), struck.end(), [&](SimTime time) {
      return to_seconds(time - gone.at) > -1 && to_seconds(time - gone.at) < limit;
    });
    const auto& log = logs[static_cast<std::size_t>(witness)];
    const auto noticed = std::find_if(log.begin(), log.end(), [&](const LogEntry& entry) {
      return entry.event == "peer-down" && entry.peer == gone.site &&
             entry.time >= at - kClockError;
    });
    const bool in_time = noticed != log.end() && noticed->time <= at + limit + report.bound_s;
    if (in_time && !busy) {
      seen.seconds.push_back(std::max(noticed->time - at, 0.0));
    } else if (!busy) {
      ++seen.missed;
    }
  }
}

}  // namespace sotto::sitelab
