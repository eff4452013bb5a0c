#include "real_run.h"

#include <poll.h>

#include <algorithm>
#include <csignal>
#include <stdexcept>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/base/unix_time.h>
#include <sotto/observe/monitor.h>
#include <sotto/sites/nodes/report/site_event.h>
#include <sotto/topology/registry.h>

namespace sotto::sitelab {
namespace {

constexpr int kMostProcesses = 32;
constexpr int kStep = 20;  // ms between looks
constexpr SimTime kLookEvery = 250'000'000;
constexpr SimTime kSampleEvery = 1'000'000'000;
/// What real processes get on top of the simulator's bound: to start, to be asked, and where others
/// use the machine.
constexpr SimTime kSlack = 10'000'000'000;
/// This process got no time for so long: nor did, perhaps, the sites.
constexpr SimTime kPause = 2'000'000'000;
/// The longest message of the task that sites train.
constexpr std::size_t kMessageBytes = 4 * 7850 + 256;

}  // namespace

void check_real(const FaultPlan& plan) {
  check_sites(plan);
  if (!plan.lies.empty() && plan.exchange == sites::MixingKind::secure_mean) {
    refuse("liar", plan.title, "real sites that sum in secret do not lie");
  }
  const bool turns = std::ranges::any_of(plan.lies, [](const PlannedLie& lie) {
    return lie.at > 0 || lie.lasting != kNever || lie.restarts;
  });
  if (turns || plan.random_lies.liars > 0) {
    refuse("liar", plan.title,
           "real sites lie from their beginning to their end, and are named by the plan");
  }
  if (plan.sites > kMostProcesses) {
    refuse("sites", fmt::to_string(plan.sites),
           fmt::format("each is a process with relays to its peers: {} at most", kMostProcesses));
  }
  if (plan.link.jitter != 0) {
    refuse("link.jitter", fmt::to_string(plan.link.jitter),
           "the relays between real sites have bandwidth and latency alone");
  }
  const auto graph = make_topology(plan.graph, plan.sites);
  for (Rank site = 0; site < plan.sites; ++site) {
    if (neighbours(*graph, site).empty()) {
      refuse("graph", plan.graph,
             fmt::format("site {} of {} has no neighbour in it, and a real site does not start "
                         "without peers; give every site an edge",
                         site, plan.sites));
    }
  }
  const auto check_kind = [](FaultKind kind, const char* where) {
    if (kind == FaultKind::clock) {
      refuse(where, fault_kind(kind).name,
             "real processes share one clock; give [random] kinds without it");
    }
  };
  for (const PlannedFault& fault : plan.faults) {
    check_kind(fault.kind, "kind");
    if (fault.link.jitter != 0) {
      refuse("link.jitter", fmt::to_string(fault.link.jitter),
             "the relays between real sites have bandwidth and latency alone");
    }
  }
  for (const FaultKind kind : plan.random ? plan.random->kinds : std::vector<FaultKind>()) {
    check_kind(kind, "kinds");
  }
}

RealRun::RealRun(const FaultPlan& plan, const RealOptions& options)
    : plan_(plan),
      options_(options),
      faults_(plan, options.seed, *this),
      fleet_(plan, options),
      states_(plan.sites),
      liveness_(plan, plus(recovery_bound(plan, kMessageBytes), kSlack)),
      start_(std::chrono::steady_clock::now()),
      audit_(plan, unix_time(),
             [this](Rank site, std::string during, std::string what) {
               fail(site, std::move(during), std::move(what));
             }),
      naming_(plan),
      last_over_(faults_.last_end()) {
  report_.seed = options.seed;
  report_.bound_s = to_seconds(liveness_.bound());
}

SimTime RealRun::now() const {
  return std::chrono::nanoseconds(std::chrono::steady_clock::now() - start_).count();
}

void RealRun::fail(Rank site, std::string during, std::string what) {
  if (!report_.violation) {
    report_.violation = {
        .time = now(), .site = site, .during = std::move(during), .what = std::move(what)};
  }
}

void RealRun::disturb(Rank site) {
  liveness_.disturb(site, now());
  fleet_.at(site).disturbed.push_back(now());
}

void RealRun::begin_process(Rank site) {
  if (!fleet_.at(site).process) {
    fleet_.begin(site, now());
    disturb(site);
  }
}

/// Finds processes that have ended, and whether that is as it should be.
void RealRun::look_after_processes() {
  for (Rank site = 0; site < plan_.sites; ++site) {
    RealSite& own = fleet_.at(site);
    if (!own.process) {
      continue;
    }
    if (const auto status = own.process->ended()) {
      ended(site, *status);
    } else if (own.leaving && !own.stopped && now() - *own.leaving > liveness_.bound()) {
      fail(site, "leaving",
           fmt::format("has not ended {:.1f} s after SIGTERM", to_seconds(now() - *own.leaving)));
    }
  }
  std::erase_if(fleet_.replaced(), [&](ReplacedProcess& old) {
    const auto status = old.process->ended();
    if (status && *status != 1) {
      fail(old.site, "the end of a process that was replaced",
           fmt::format("ends with status {}", *status));
    }
    return status.has_value();
  });
}

void RealRun::ended(Rank site, int status) {
  RealSite& own = fleet_.at(site);
  own.process.reset();
  own.watch.follow(0, 0);
  disturb(site);
  if (const auto leaving = std::exchange(own.leaving, std::nullopt)) {
    report_.worst_leave_s = std::max(report_.worst_leave_s, to_seconds(now() - *leaving));
    if (status != 0) {
      fail(site, "leaving", fmt::format("ends with status {}", status));
    }
    return;
  }
  const std::vector<LogEntry> log = read_log(own.home.files->log());
  const LogEntry last = log.empty() ? LogEntry() : log.back();
  if (status == 1 && !report_.whole && last.event == name_of(SiteEvent::Kind::newer_process)) {
    // The operator of the site starts it again.
    begins_.push_back({.site = site, .at = now() + plan_.reconnect});
    return;
  }
  fail(site, "a round", fmt::format("ends by itself with status {}: {}", status, last.text));
}

/// What the monitors say.
void RealRun::look_at_sites() {
  for (Rank site = 0; site < plan_.sites; ++site) {
    RealSite& own = fleet_.at(site);
    const auto latest = own.watch.latest();
    if (!own.process || !latest || latest->process != own.number) {
      continue;
    }
    const SiteStatus& before = own.seen;
    if (before.process != own.number || latest->state.round != before.state.round ||
        latest->waits_for_model != before.waits_for_model) {
      own.moved = now();
    }
    own.seen = *latest;
    naming_.see_status(site, own.seen);
    for (const sites::PeerState& peer : own.seen.peers) {
      report_.offences = std::max(report_.offences, peer.offences);
      if (peer.offences > 0 && !fleet_.lies(site_rank(peer.name))) {
        fail(site, "a round",
             fmt::format("accuses {}, which is honest: {}", peer.name, peer.trouble));
      }
    }
    const Round round = own.seen.state.round;
    while (faults_.inject_due(site, round, FaultMoment::any)) {
    }
  }
}

void RealRun::look_for_hangs() {
  std::vector<ObservedSite> views;
  for (Rank site = 0; site < plan_.sites; ++site) {
    const RealSite& own = fleet_.at(site);
    views.push_back({.site = site,
                     .running = own.process && !own.stopped && !own.leaving,
                     .waits_for_model = own.seen.waits_for_model,
                     .moved = own.moved,
                     .listed = own.seen.listed,
                     .state = &own.seen.state,
                     .peers = own.seen.peers});
  }
  std::vector<char> contested(fleet_.size());
  for (const ReplacedProcess& old : fleet_.replaced()) {
    if (old.holds) {
      contested[static_cast<std::size_t>(old.site)] = 1;
    }
  }
  auto trouble = liveness_.look(now(), views, contested, fleet_.relays());
  if (trouble) {
    fail(trouble->first, "waiting", std::move(trouble->second));
  }
}

/// What the sites have written meanwhile.
void RealRun::look_at_states() {
  states_.tell([&](Rank site, StateWatch::Change change, std::string_view name) {
    if (change == StateWatch::Change::begun) {
      reach(site, FaultMoment::before_commit);
    } else {
      fleet_.at(site).home.files->keep_state(name);
      reach(site, FaultMoment::before_release);
    }
  });
  for (Rank site = 0; site < plan_.sites; ++site) {
    if (const RealSite& own = fleet_.at(site); own.process) {
      states_.follow(site, own.home.files->state());
    }
  }
}

bool RealRun::all_done() const {
  if (!plan_.rounds || now() <= last_over_) {
    return false;
  }
  for (Rank site = 0; site < plan_.sites; ++site) {
    const RealSite& own = fleet_.at(site);
    if (own.process && !fleet_.lies(site) && own.seen.state.round < *plan_.rounds) {
      return false;
    }
  }
  return true;
}

RealProgress RealRun::progress() const {
  RealProgress progress = {.run_s = to_seconds(now())};
  for (const std::uint64_t count : faults_.injected()) {
    progress.faults += count;
  }
  for (Rank site = 0; site < plan_.sites; ++site) {
    const RealSite& own = fleet_.at(site);
    if (own.has_answered() && own.seen.state.has_model) {
      const Round round = own.seen.state.round;
      progress.least = progress.running == 0 ? round : std::min(progress.least, round);
      progress.most = std::max(progress.most, round);
      ++progress.running;
    }
  }
  return progress;
}

void RealRun::step() {
  inject_and_end();
  look_after_processes();
  look_at_sites();
  look_at_states();
  if (now() - looked_ >= kLookEvery) {
    looked_ = now();
    look_for_hangs();
    if (options_.progress) {
      options_.progress(progress());
    }
  }
  if (now() - sampled_ >= kSampleEvery) {
    sampled_ = now();
    fleet_.take_footprints(now(), footprints_);
  }
}

RealReport RealRun::run() {
  for (Rank site = 0; site < plan_.sites; ++site) {
    if (!faults_.joins_later(site)) {
      begin_process(site);
    }
  }
  SimTime last = now();
  while (now() < plan_.duration && !report_.violation && !all_done() &&
         !(options_.stop && options_.stop())) {
    step();
    states_.wait(kStep);
    if (now() - last > kPause) {
      report_.pauses_s += to_seconds(now() - last);
      for (Rank site = 0; site < plan_.sites; ++site) {
        disturb(site);
      }
    }
    last = now();
  }
  if (plan_.rounds && !all_done() && now() >= plan_.duration) {
    fail(-1, "the end of the run", fmt::format("some have not done {} rounds", *plan_.rounds));
  }
  report_.run_s = to_seconds(now());
  report_.worst_recovery_s = to_seconds(liveness_.worst_recovery());
  report_.injected = faults_.injected();
  ask_for_metrics();
  end_all();
  report_.starts = fleet_.starts();
  report_.growth = footprints_.growth(steady());
  if (report_.growth.flat == false) {
    fail(-1, "the end of the run", "memory or descriptors of its processes have grown");
  }
  audit_.finish(fleet_, naming_, report_);
  return std::move(report_);
}

bool RealRun::steady() const {
  return std::ranges::none_of(faults_.faults(), [](const PlannedFault& fault) {
    return fault.kind == FaultKind::join ||
           (fault_kind(fault.kind).lasts && fault.lasting == kNever);
  });
}

/// What the honest sites say of liars in their metrics, before they end.
void RealRun::ask_for_metrics() {
  for (Rank site = 0; !plan_.lies.empty() && site < plan_.sites; ++site) {
    const RealSite& own = fleet_.at(site);
    if (fleet_.lies(site) || !own.process || own.stopped || own.leaving) {
      continue;
    }
    try {
      naming_.see_metrics(site, ask_monitor({"127.0.0.1", own.home.monitor}, "/metrics"));
    } catch (const std::runtime_error& error) {
      fail(site, "the end of the run", fmt::format("has no metrics: {}", error.what()));
    }
  }
}

/// SIGTERM to all; each must end in good order, and soon.
void RealRun::end_all() {
  fleet_.replaced().clear();
  for (Rank site = 0; site < plan_.sites; ++site) {
    RealSite& own = fleet_.at(site);
    if (!own.process) {
      continue;
    }
    const bool up = own.has_answered();
    own.process->signal(SIGCONT);
    own.stopped = false;
    own.process->signal(up ? SIGTERM : SIGKILL);
    if (!up) {
      own.process.reset();
    } else if (!own.leaving) {
      own.leaving = now();
    }
  }
  const SimTime since = now();
  while (fleet_.any_runs() && now() - since <= liveness_.bound()) {
    look_after_processes();
    ::poll(nullptr, 0, kStep);
  }
  look_after_processes();
  for (Rank site = 0; site < plan_.sites; ++site) {
    fleet_.at(site).process.reset();
  }
}

std::vector<std::string> liar_words(Rank site, std::uint64_t seed, const std::string& folder,
                                    int port) {
  return {"--lie",  fmt::to_string(site), "--seed", fmt::to_string(seed), "--keep", folder,
          "--port", fmt::to_string(port)};
}

RealReport run_real_sites(const FaultPlan& plan, const RealOptions& options) {
  check_real(plan);
  return RealRun(plan, options).run();
}

}  // namespace sotto::sitelab
