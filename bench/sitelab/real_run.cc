#include "real_run.h"

#include <poll.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include <sotto/observe/monitor.h>
#include <sotto/sites/nodes/report/site_event.h>

#include "run_audit.h"
#include "site_log.h"
#include "site_name.h"

namespace sotto::sitelab {
namespace {

constexpr int kStep = 20;  // ms between looks
constexpr SimTime kLookEvery = 250'000'000;
constexpr SimTime kSampleEvery = 1'000'000'000;
/// This process got no time for so long: nor did, perhaps, the sites.
constexpr SimTime kPause = 2'000'000'000;

}  // namespace

RealRun::RealRun(const FaultPlan& plan, const RealOptions& options)
    : plan_(plan),
      options_(options),
      fleet_(plan, options),
      injection_(plan, options.seed, clock_, fleet_),
      naming_(plan) {}

void RealRun::fail(Rank site, std::string during, std::string what) {
  if (!violation_) {
    violation_ = {
        .time = clock_.now(), .site = site, .during = std::move(during), .what = std::move(what)};
  }
}

void RealRun::look_after_processes() {
  for (Rank site = 0; site < plan_.sites; ++site) {
    RealSite& own = fleet_.at(site);
    if (const auto end = own.take_end()) {
      ended(site, *end);
    } else if (own.leaving() && !own.stopped() &&
               clock_.now() - *own.leaving() > fleet_.liveness().bound()) {
      fail(site, "leaving",
           fmt::format("has not ended {:.1f} s after SIGTERM",
                       to_seconds(clock_.now() - *own.leaving())));
    }
  }
  for (const auto& [site, status] : fleet_.take_replaced_ends()) {
    if (status != 1) {
      fail(site, "the end of a process that was replaced",
           fmt::format("ends with status {}", status));
    }
  }
}

void RealRun::ended(Rank site, const ProcessEnd& end) {
  fleet_.disturb(site, clock_.now());
  if (end.leaving) {
    worst_leave_s_ = std::max(worst_leave_s_, to_seconds(clock_.now() - *end.leaving));
    if (end.status != 0) {
      fail(site, "leaving", fmt::format("ends with status {}", end.status));
    }
    return;
  }
  const std::vector<LogEntry> log = read_log(fleet_.at(site).files().log());
  const LogEntry last = log.empty() ? LogEntry() : log.back();
  if (end.status == 1 && injection_.lost_states().any &&
      last.event == name_of(SiteEvent::Kind::newer_process)) {
    // The operator of the site starts it again.
    injection_.begin_later(site, clock_.now() + plan_.reconnect);
    return;
  }
  fail(site, "a round", fmt::format("ends by itself with status {}: {}", end.status, last.text));
}

void RealRun::look_at_sites() {
  for (Rank site = 0; site < plan_.sites; ++site) {
    RealSite& own = fleet_.at(site);
    if (!own.look(clock_.now())) {
      continue;
    }
    naming_.see_status(site, own.seen());
    for (const sites::PeerState& peer : own.seen().peers) {
      offences_ = std::max(offences_, peer.offences);
      if (peer.offences > 0 && !fleet_.lies(site_rank(peer.name))) {
        fail(site, "a round",
             fmt::format("accuses {}, which is honest: {}", peer.name, peer.trouble));
      }
    }
    const Round round = own.seen().state.round;
    while (injection_.schedule().inject_due(site, round, FaultMoment::any)) {
    }
  }
}

bool RealRun::all_done() const {
  if (!plan_.rounds || clock_.now() <= injection_.schedule().last_end()) {
    return false;
  }
  for (Rank site = 0; site < plan_.sites; ++site) {
    const RealSite& own = fleet_.at(site);
    if (own.runs() && !fleet_.lies(site) && own.seen().state.round < *plan_.rounds) {
      return false;
    }
  }
  return true;
}

RealProgress RealRun::progress() const {
  RealProgress progress = {.run_s = to_seconds(clock_.now())};
  for (const std::uint64_t count : injection_.schedule().injected()) {
    progress.faults += count;
  }
  for (Rank site = 0; site < plan_.sites; ++site) {
    const RealSite& own = fleet_.at(site);
    if (own.has_answered() && own.seen().state.has_model) {
      const Round round = own.seen().state.round;
      progress.least = progress.running == 0 ? round : std::min(progress.least, round);
      progress.most = std::max(progress.most, round);
      ++progress.running;
    }
  }
  return progress;
}

void RealRun::step() {
  injection_.inject_and_end();
  look_after_processes();
  look_at_sites();
  injection_.look_at_states();
  if (clock_.now() - looked_ >= kLookEvery) {
    looked_ = clock_.now();
    if (auto hang = fleet_.find_hang(clock_.now())) {
      fail(hang->first, "waiting", std::move(hang->second));
    }
    if (options_.progress) {
      options_.progress(progress());
    }
  }
  if (clock_.now() - sampled_ >= kSampleEvery) {
    sampled_ = clock_.now();
    fleet_.take_footprints(clock_.now(), footprints_);
  }
}

void RealRun::play() {
  for (Rank site = 0; site < plan_.sites; ++site) {
    if (!injection_.schedule().joins_later(site)) {
      fleet_.begin(site, clock_.now());
    }
  }
  SimTime last = clock_.now();
  while (clock_.now() < plan_.duration && !violation_ && !all_done() &&
         !(options_.stop && options_.stop())) {
    step();
    injection_.wait(kStep);
    if (clock_.now() - last > kPause) {
      pauses_s_ += to_seconds(clock_.now() - last);
      for (Rank site = 0; site < plan_.sites; ++site) {
        fleet_.disturb(site, clock_.now());
      }
    }
    last = clock_.now();
  }
  if (plan_.rounds && !all_done() && clock_.now() >= plan_.duration) {
    fail(-1, "the end of the run", fmt::format("some have not done {} rounds", *plan_.rounds));
  }
  run_s_ = to_seconds(clock_.now());
}

bool RealRun::steady() const {
  return std::ranges::none_of(injection_.schedule().faults(), [](const PlannedFault& fault) {
    return fault.kind == FaultKind::join ||
           (fault_kind(fault.kind).lasts && fault.lasting == kNever);
  });
}

void RealRun::ask_for_metrics() {
  for (Rank site = 0; !plan_.lies.empty() && site < plan_.sites; ++site) {
    const RealSite& own = fleet_.at(site);
    if (fleet_.lies(site) || !own.at_work()) {
      continue;
    }
    try {
      naming_.see_metrics(site, ask_monitor({"127.0.0.1", own.monitor()}, "/metrics"));
    } catch (const std::runtime_error& error) {
      fail(site, "the end of the run", fmt::format("has no metrics: {}", error.what()));
    }
  }
}

void RealRun::end_all() {
  fleet_.kill_replaced();
  for (Rank site = 0; site < plan_.sites; ++site) {
    if (fleet_.at(site).runs()) {
      fleet_.at(site).end(clock_.now());
    }
  }
  const SimTime since = clock_.now();
  while (fleet_.any_runs() && clock_.now() - since <= fleet_.liveness().bound()) {
    look_after_processes();
    ::poll(nullptr, 0, kStep);
  }
  look_after_processes();
  for (Rank site = 0; site < plan_.sites; ++site) {
    if (fleet_.at(site).runs()) {
      fleet_.at(site).kill();
    }
  }
}

RealReport RealRun::run() {
  play();
  ask_for_metrics();
  end_all();
  return report();
}

RealReport RealRun::report() {
  RealReport report;
  report.seed = options_.seed;
  report.injected = injection_.schedule().injected();
  report.run_s = run_s_;
  report.pauses_s = pauses_s_;
  report.starts = fleet_.starts();
  report.bound_s = to_seconds(fleet_.liveness().bound());
  report.worst_recovery_s = to_seconds(fleet_.liveness().worst_recovery());
  report.worst_leave_s = worst_leave_s_;
  report.offences = offences_;
  report.whole = !injection_.lost_states().any;
  report.growth = footprints_.growth(steady());
  if (report.growth.flat == false) {
    fail(-1, "the end of the run", "memory or descriptors of its processes have grown");
  }
  const RunAudit audit(plan_, clock_.unix_start(),
                       [this](Rank site, std::string during, std::string what) {
                         fail(site, std::move(during), std::move(what));
                       });
  audit.finish(fleet_, injection_, naming_, report);
  report.violation = std::move(violation_);
  return report;
}

}  // namespace sotto::sitelab
