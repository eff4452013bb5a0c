#include "real_run.h"

#include <poll.h>

#include <algorithm>
#include <csignal>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/observe/monitor.h>
#include <sotto/sites/nodes/report/site_event.h>
#include <sotto/topology/registry.h>

#include "site_log.h"
#include "site_name.h"

namespace sotto::sitelab {
namespace {

constexpr int kMostProcesses = 32;
constexpr int kStep = 20;  // ms between looks
constexpr SimTime kLookEvery = 250'000'000;
constexpr SimTime kSampleEvery = 1'000'000'000;
/// This process got no time for so long: nor did, perhaps, the sites.
constexpr SimTime kPause = 2'000'000'000;

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
    : state_(plan, options), injection_(state_), last_over_(injection_.schedule().last_end()) {}

/// Finds processes that have ended, and whether that is as it should be.
void RealRun::look_after_processes() {
  for (Rank site = 0; site < state_.plan.sites; ++site) {
    RealSite& own = state_.fleet.at(site);
    if (!own.process) {
      continue;
    }
    if (const auto status = own.process->ended()) {
      ended(site, *status);
    } else if (own.leaving && !own.stopped &&
               state_.now() - *own.leaving > state_.liveness.bound()) {
      state_.fail(site, "leaving",
                  fmt::format("has not ended {:.1f} s after SIGTERM",
                              to_seconds(state_.now() - *own.leaving)));
    }
  }
  std::erase_if(state_.fleet.replaced(), [&](ReplacedProcess& old) {
    const auto status = old.process->ended();
    if (status && *status != 1) {
      state_.fail(old.site, "the end of a process that was replaced",
                  fmt::format("ends with status {}", *status));
    }
    return status.has_value();
  });
}

void RealRun::ended(Rank site, int status) {
  RealSite& own = state_.fleet.at(site);
  own.process.reset();
  own.watch.follow(0, 0);
  state_.disturb(site);
  if (const auto leaving = std::exchange(own.leaving, std::nullopt)) {
    state_.report.worst_leave_s =
        std::max(state_.report.worst_leave_s, to_seconds(state_.now() - *leaving));
    if (status != 0) {
      state_.fail(site, "leaving", fmt::format("ends with status {}", status));
    }
    return;
  }
  const std::vector<LogEntry> log = read_log(own.home.files->log());
  const LogEntry last = log.empty() ? LogEntry() : log.back();
  if (status == 1 && !state_.report.whole &&
      last.event == name_of(SiteEvent::Kind::newer_process)) {
    // The operator of the site starts it again.
    injection_.begin_later(site, state_.now() + state_.plan.reconnect);
    return;
  }
  state_.fail(site, "a round", fmt::format("ends by itself with status {}: {}", status, last.text));
}

/// What the monitors say.
void RealRun::look_at_sites() {
  for (Rank site = 0; site < state_.plan.sites; ++site) {
    RealSite& own = state_.fleet.at(site);
    const auto latest = own.watch.latest();
    if (!own.process || !latest || latest->process != own.number) {
      continue;
    }
    const SiteStatus& before = own.seen;
    if (before.process != own.number || latest->state.round != before.state.round ||
        latest->waits_for_model != before.waits_for_model) {
      own.moved = state_.now();
    }
    own.seen = *latest;
    state_.naming.see_status(site, own.seen);
    for (const sites::PeerState& peer : own.seen.peers) {
      state_.report.offences = std::max(state_.report.offences, peer.offences);
      if (peer.offences > 0 && !state_.fleet.lies(site_rank(peer.name))) {
        state_.fail(site, "a round",
                    fmt::format("accuses {}, which is honest: {}", peer.name, peer.trouble));
      }
    }
    const Round round = own.seen.state.round;
    while (injection_.schedule().inject_due(site, round, FaultMoment::any)) {
    }
  }
}

void RealRun::look_for_hangs() {
  std::vector<ObservedSite> views;
  for (Rank site = 0; site < state_.plan.sites; ++site) {
    const RealSite& own = state_.fleet.at(site);
    views.push_back({.site = site,
                     .running = own.process && !own.stopped && !own.leaving,
                     .waits_for_model = own.seen.waits_for_model,
                     .moved = own.moved,
                     .listed = own.seen.listed,
                     .state = &own.seen.state,
                     .peers = own.seen.peers});
  }
  std::vector<char> contested(state_.fleet.size());
  for (const ReplacedProcess& old : state_.fleet.replaced()) {
    if (old.holds) {
      contested[static_cast<std::size_t>(old.site)] = 1;
    }
  }
  auto trouble = state_.liveness.look(state_.now(), views, contested, state_.fleet.relays());
  if (trouble) {
    state_.fail(trouble->first, "waiting", std::move(trouble->second));
  }
}

bool RealRun::all_done() const {
  if (!state_.plan.rounds || state_.now() <= last_over_) {
    return false;
  }
  for (Rank site = 0; site < state_.plan.sites; ++site) {
    const RealSite& own = state_.fleet.at(site);
    if (own.process && !state_.fleet.lies(site) && own.seen.state.round < *state_.plan.rounds) {
      return false;
    }
  }
  return true;
}

RealProgress RealRun::progress() const {
  RealProgress progress = {.run_s = to_seconds(state_.now())};
  for (const std::uint64_t count : injection_.schedule().injected()) {
    progress.faults += count;
  }
  for (Rank site = 0; site < state_.plan.sites; ++site) {
    const RealSite& own = state_.fleet.at(site);
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
  injection_.inject_and_end();
  look_after_processes();
  look_at_sites();
  injection_.look_at_states();
  if (state_.now() - looked_ >= kLookEvery) {
    looked_ = state_.now();
    look_for_hangs();
    if (state_.options.progress) {
      state_.options.progress(progress());
    }
  }
  if (state_.now() - sampled_ >= kSampleEvery) {
    sampled_ = state_.now();
    state_.fleet.take_footprints(state_.now(), footprints_);
  }
}

RealReport RealRun::run() {
  for (Rank site = 0; site < state_.plan.sites; ++site) {
    if (!injection_.schedule().joins_later(site)) {
      state_.begin_process(site);
    }
  }
  SimTime last = state_.now();
  while (state_.now() < state_.plan.duration && !state_.report.violation && !all_done() &&
         !(state_.options.stop && state_.options.stop())) {
    step();
    state_.states.wait(kStep);
    if (state_.now() - last > kPause) {
      state_.report.pauses_s += to_seconds(state_.now() - last);
      for (Rank site = 0; site < state_.plan.sites; ++site) {
        state_.disturb(site);
      }
    }
    last = state_.now();
  }
  if (state_.plan.rounds && !all_done() && state_.now() >= state_.plan.duration) {
    state_.fail(-1, "the end of the run",
                fmt::format("some have not done {} rounds", *state_.plan.rounds));
  }
  state_.report.run_s = to_seconds(state_.now());
  state_.report.worst_recovery_s = to_seconds(state_.liveness.worst_recovery());
  state_.report.injected = injection_.schedule().injected();
  ask_for_metrics();
  end_all();
  state_.report.starts = state_.fleet.starts();
  state_.report.growth = footprints_.growth(steady());
  if (state_.report.growth.flat == false) {
    state_.fail(-1, "the end of the run", "memory or descriptors of its processes have grown");
  }
  state_.audit.finish(state_.fleet, state_.naming, state_.report);
  return std::move(state_.report);
}

bool RealRun::steady() const {
  return std::ranges::none_of(injection_.schedule().faults(), [](const PlannedFault& fault) {
    return fault.kind == FaultKind::join ||
           (fault_kind(fault.kind).lasts && fault.lasting == kNever);
  });
}

/// What the honest sites say of liars in their metrics, before they end.
void RealRun::ask_for_metrics() {
  for (Rank site = 0; !state_.plan.lies.empty() && site < state_.plan.sites; ++site) {
    const RealSite& own = state_.fleet.at(site);
    if (state_.fleet.lies(site) || !own.process || own.stopped || own.leaving) {
      continue;
    }
    try {
      state_.naming.see_metrics(site, ask_monitor({"127.0.0.1", own.home.monitor}, "/metrics"));
    } catch (const std::runtime_error& error) {
      state_.fail(site, "the end of the run", fmt::format("has no metrics: {}", error.what()));
    }
  }
}

/// SIGTERM to all; each must end in good order, and soon.
void RealRun::end_all() {
  state_.fleet.replaced().clear();
  for (Rank site = 0; site < state_.plan.sites; ++site) {
    RealSite& own = state_.fleet.at(site);
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
      own.leaving = state_.now();
    }
  }
  const SimTime since = state_.now();
  while (state_.fleet.any_runs() && state_.now() - since <= state_.liveness.bound()) {
    look_after_processes();
    ::poll(nullptr, 0, kStep);
  }
  look_after_processes();
  for (Rank site = 0; site < state_.plan.sites; ++site) {
    state_.fleet.at(site).process.reset();
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
