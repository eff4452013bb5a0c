// The end of a run on real sites: all leave, and what they leave behind is looked at.
#include <poll.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <stdexcept>
#include <vector>

#include <fmt/format.h>

#include <sotto/observe/monitor.h>

#include "real_run.h"

namespace sotto::sitelab {
namespace {

constexpr double kTolerance = 1e-9;
constexpr int kWait = 20;  // ms
/// A line of a log may carry a time that is a little earlier than what it tells of.
constexpr double kClockError = 0.05;
/// A process that is killed should be missed within so long, in seconds.
constexpr double kKillNoticed = 2;

}  // namespace

/// Whether the plan leaves as many sites as it began with, but for a while.
bool RealRun::steady() const {
  return std::ranges::none_of(faults_.faults(), [](const PlannedFault& fault) {
    return fault.kind == FaultKind::join ||
           (fault_kind(fault.kind).lasts && fault.lasting == kNever);
  });
}

/// SIGTERM to all; each must end in good order, and soon.
void RealRun::end_all() {
  replaced_.clear();
  for (const auto& own : slots_) {
    if (own->process) {
      const bool up = own->seen.process == own->number;
      own->process->signal(SIGCONT);
      own->stopped = false;
      own->process->signal(up ? SIGTERM : SIGKILL);
      if (!up) {
        own->process.reset();
      } else if (!own->leaving) {
        own->leaving = now();
      }
    }
  }
  const auto any = [&] {
    return std::any_of(slots_.begin(), slots_.end(),
                       [](const auto& own) { return own->process != nullptr; });
  };
  const SimTime since = now();
  while (any() && now() - since <= liveness_.bound()) {
    look_after_processes();
    ::poll(nullptr, 0, kWait);
  }
  look_after_processes();
  for (const auto& own : slots_) {
    own->process.reset();
  }
}

void RealRun::audit() {
  report_.growth = footprints_.growth(steady());
  if (report_.growth.flat == false) {
    fail(-1, "the end of the run", "memory or descriptors of its processes have grown");
  }
  std::vector<DurableSite> durable;
  for (Rank site = 0; site < plan_.sites; ++site) {
    if (lies(site)) {
      continue;
    }
    auto found = read_durable(plan_, *slot(site).home.files, site);
    if (!found.ok()) {
      fail(site, "the end of the run", fmt::format("its state: {}", found.status().message()));
    } else if (found->has_value()) {
      durable.push_back(std::move(**found));
    }
  }
  for (const DurableSite& site : durable) {
    const bool first = &site == &durable.front();
    report_.rounds_least =
        first ? site.state.round : std::min(report_.rounds_least, site.state.round);
    report_.rounds_most = std::max(report_.rounds_most, site.state.round);
    report_.largest_state = std::max(report_.largest_state, site.bytes);
  }
  judge(durable);
  read_logs();
  if (plan_.exchange != sites::MixingKind::push_sum) {
    return;
  }
  MassAudit& mass = report_.mass = audit_mass(durable, plan_.sites);
  for (const double minted : minted_before_) {
    mass.minted += minted;
    mass.lost += minted;
  }
  mass.lost += returned_before_;
  const double tolerance = kTolerance * std::max(1.0, mass.minted);
  if (!plan_.lies.empty()) {
    // What liars hold, or say that they give, is nobody's. Sites take away again what is minted.
    if (report_.whole && mass.worst_error > std::max(tolerance, kTolerance * -mass.returned)) {
      fail(-1, "the audit",
           fmt::format("the accounts of a site are out of balance by {:.3g}", mass.worst_error));
    }
    return;
  }
  if (report_.whole && !(std::abs(mass.lost) <= tolerance && mass.worst_error <= tolerance)) {
    fail(-1, "the audit",
         fmt::format(
             "of a mass of {} {:.3g} is gone although every state is there, and the accounts "
             "of a site are out of balance by {:.3g}",
             mass.minted, mass.lost, mass.worst_error));
  } else if (!(mass.lost >= -tolerance)) {
    fail(-1, "the audit", fmt::format("{:.3g} more mass is there than was minted", -mass.lost));
  }
}

/// What the honest sites say of liars in their metrics, before they end.
void RealRun::ask_for_metrics() {
  for (Rank site = 0; !plan_.lies.empty() && site < plan_.sites; ++site) {
    const Slot& own = slot(site);
    if (lies(site) || !own.process || own.stopped || own.leaving) {
      continue;
    }
    try {
      naming_.see_metrics(site, ask_monitor({"127.0.0.1", own.home.monitor}, "/metrics"));
    } catch (const std::runtime_error& error) {
      fail(site, "the end of the run", fmt::format("has no metrics: {}", error.what()));
    }
  }
}

/// How far the honest sites have come, and how good their models are.
void RealRun::judge(const std::vector<DurableSite>& durable) {
  SiteJudge judge(plan_);
  report_.outcomes.resize(slots_.size());
  for (const DurableSite& site : durable) {
    report_.outcomes[static_cast<std::size_t>(site.site)] = {
        .round = site.state.round, .accuracy = judge.accuracy(site.parameters)};
  }
}

void RealRun::read_logs() {
  std::vector<std::vector<LogEntry>> logs(slots_.size());
  for (std::size_t site = 0; site < slots_.size(); ++site) {
    for (const std::string& path : slots_[site]->logs) {
      const std::vector<LogEntry> more = read_log(path);
      logs[site].insert(logs[site].end(), more.begin(), more.end());
    }
    for (const LogEntry& entry : logs[site]) {
      report_.resets += static_cast<std::uint64_t>(entry.event == "state-given-up");
      if (entry.event == "peer-offence" && !lies(entry.peer)) {
        ++report_.offences;
        fail(static_cast<Rank>(site), "a round", "accuses an honest site: " + entry.text);
      }
    }
  }
  std::vector<std::vector<Rank>> near;
  for (Rank site = 0; site < plan_.sites; ++site) {
    near.push_back(sites::neighbours(*topology_, site));
    if (!lies(site)) {
      naming_.see_log(site, logs[static_cast<std::size_t>(site)]);
    }
  }
  report_.named = naming_.named(near);
  report_.honest_accused = naming_.honest_accused();
  for (const Gone& gone : gone_) {
    measure(gone, logs);
  }
  for (Detections* seen : {&report_.killed, &report_.stopped}) {
    std::sort(seen->seconds.begin(), seen->seconds.end());
  }
}

/// When those who were in touch with it said so; who was struck itself meanwhile is not asked.
void RealRun::measure(const Gone& gone, const std::vector<std::vector<LogEntry>>& logs) {
  const double at = unix_start_ + to_seconds(gone.at);
  const double limit = kKillNoticed + (gone.stopped ? to_seconds(plan_.silence) : 0);
  Detections& seen = gone.stopped ? report_.stopped : report_.killed;
  for (const Rank witness : gone.witnesses) {
    const auto& struck = slot(witness).disturbed;
    const bool busy = std::any_of(struck.begin(), struck.end(), [&](SimTime time) {
      return to_seconds(time - gone.at) > -1 && to_seconds(time - gone.at) < limit;
    });
    const auto& log = logs[static_cast<std::size_t>(witness)];
    const auto noticed = std::find_if(log.begin(), log.end(), [&](const LogEntry& entry) {
      return entry.event == "peer-down" && entry.peer == gone.site &&
             entry.time >= at - kClockError;
    });
    const bool in_time = noticed != log.end() && noticed->time <= at + limit + report_.bound_s;
    if (in_time && !busy) {
      seen.seconds.push_back(std::max(noticed->time - at, 0.0));
    } else if (!busy) {
      ++seen.missed;
    }
  }
}

}  // namespace sotto::sitelab
