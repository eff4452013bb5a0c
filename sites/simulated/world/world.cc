#include "world.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace sotto::sites {

World::World(const FaultPlan& plan, const SimulatedSitesOptions& options)
    : state_(plan, options,
             [this](ProcessId id, ChannelNews news) { talk_.tell(id, std::move(news)); }),
      liars_(state_),
      talk_(state_, liars_, [this](Process& process) { rounds_.advance(process); }),
      rounds_(state_, liars_, talk_,
              [this](Process& process, FaultMoment moment) {
                return injection_.reach(process, moment);
              }),
      starter_(state_, rounds_),
      injection_(state_, rounds_, talk_, starter_) {}

void World::handle(const Event& event) {
  if (event.kind >= Wires::kFirstEvent) {
    state_.wires.handle(event);
    return;
  }
  switch (static_cast<WorldEvent>(event.kind)) {
    case WorldEvent::phase_over:
      if (Process& process = state_.processes[event.subject];
          process.running() && process.version == event.version) {
        rounds_.on_phase_over(process);
      }
      break;
    case WorldEvent::fault_due:
      injection_.schedule().begin(event.subject);
      break;
    case WorldEvent::fault_over:
      injection_.schedule().end(event.subject);
      break;
    case WorldEvent::begin_due: {
      const auto site = static_cast<Rank>(event.subject);
      if (const Process* process = state_.living(site); process == nullptr) {
        starter_.begin(site);
      } else if (process->leaving) {  // it is on its way out still
        state_.push(WorldEvent::begin_due, plus(state_.now(), state_.plan.reconnect),
                    event.subject);
      }
      break;
    }
    case WorldEvent::lie_turns:
      liars_.turn();
      break;
    case WorldEvent::tick:
      look();
      state_.push(WorldEvent::tick, plus(state_.now(), state_.plan.silence / 20));
      break;
  }
}

/// The onlooker's view of all sites at once.
void World::look() {
  std::vector<ObservedSite> sites;
  sites.reserve(state_.slots.size());
  for (Rank site = 0; site < state_.plan.sites; ++site) {
    const Process* process = state_.living(site);
    sites.push_back(process != nullptr ? process->view() : ObservedSite{.site = site});
  }
  std::vector<char> contested(state_.slots.size());
  for (const Process& process : state_.processes) {
    if (process.running() && process.fenced) {
      contested[static_cast<std::size_t>(process.site)] = 1;
    }
  }
  auto trouble = state_.liveness.look(state_.now(), sites, std::move(contested), state_.wires);
  for (Process& process : state_.processes) {
    if (process.alive && process.fenced && !trouble) {
      trouble = state_.liveness.look_at_replaced(state_.now(), process.view(), process.alone_until,
                                                 sites, state_.wires);
    }
  }
  if (trouble) {
    state_.begin_event(trouble->first, "waiting");
    state_.audit.fail(std::move(trouble->second));
  }
}

bool World::all_done() const {
  if (!state_.plan.rounds || state_.now() <= last_over_) {
    return false;
  }
  for (Rank site = 0; site < state_.plan.sites; ++site) {
    const Process* process = state_.living(site);
    if (process != nullptr && state_.honest(site) &&
        process->seen.state.round < *state_.plan.rounds) {
      return false;
    }
  }
  return true;
}

/// The processes that begin, faults, lies and looks of the plan.
void World::push_what_is_planned() {
  const FaultSchedule& schedule = injection_.schedule();
  for (Rank site = 0; site < state_.plan.sites; ++site) {
    if (!schedule.joins_later(site)) {
      state_.push(WorldEvent::begin_due, 0, static_cast<std::uint32_t>(site));
    }
  }
  const std::span<const PlannedFault> faults = schedule.faults();
  for (std::size_t i = 0; i < faults.size(); ++i) {
    state_.push(WorldEvent::fault_due, faults[i].at, static_cast<std::uint32_t>(i));
  }
  for (const PlannedLie& lie : state_.plan.lies) {
    for (const SimTime turn : {lie.restarts ? lie.at : kNever, lie.end()}) {
      if (turn > 0 && turn < state_.plan.duration) {
        state_.push(WorldEvent::lie_turns, turn);
      }
    }
  }
  last_over_ = schedule.last_end();
  state_.push(WorldEvent::tick, 0);
}

SimulatedSitesReport World::run() {
  push_what_is_planned();
  std::vector<const MassAccount*> accounts(state_.slots.size());
  while (!state_.queue.empty() && state_.queue.next_time() <= state_.plan.duration &&
         !state_.audit.violation() && !all_done()) {
    const Event event = state_.queue.pop();
    ++state_.report.events;
    handle(event);
    for (std::size_t i = 0; i < state_.slots.size(); ++i) {
      const Process* process = state_.living(static_cast<Rank>(i));
      accounts[i] = process != nullptr ? &process->seen.account : &state_.slots[i].disk->account();
    }
    state_.begin_event(-1, "looking at all sites");
    state_.audit.check_total(accounts, state_.whole);
    if (state_.options.stop && state_.report.events % 1024 == 0 && state_.options.stop()) {
      break;
    }
  }
  return report();
}

SimulatedSitesReport World::report() {
  SimulatedSitesReport& report = state_.report;
  if (state_.plan.rounds && !all_done() && !state_.audit.violation() &&
      state_.queue.next_time() > state_.plan.duration) {
    state_.audit.begin_event(state_.plan.duration, -1, "the end of the run");
    state_.audit.fail(fmt::format("some have not done {} rounds", *state_.plan.rounds));
  }
  state_.audit.report(report);
  report.injected = injection_.schedule().injected();
  report.worst_recovery = state_.liveness.worst_recovery();
  report.end = state_.now();
  report.rounds.resize(state_.slots.size());
  std::optional<Round> least;
  for (const Process* process : state_.living_honest()) {
    const Round round = process->seen.state.round;
    report.rounds[static_cast<std::size_t>(process->site)] = round;
    report.rounds_most = std::max(report.rounds_most, round);
    least = std::min(least.value_or(round), round);
    for (const PeerState& peer : process->node->peers()) {
      report.cuts += peer.cut;
      const bool named = peer.habit != PeerHabit::none || !peer.waited_for || !peer.answers ||
                         peer.barred || peer.blamed > 0;
      report.habits += named ? 1 : 0;
    }
  }
  report.rounds_least = least.value_or(0);
  state_.naming.report(report);
  report.error = error_of_models();
  report.trace_sha256 = state_.hash.finish_hex();
  return report;
}

/// The rms distance of the honest sites' models from the optimum of their own losses.
double World::error_of_models() const {
  const std::vector<const Process*> there = state_.living_honest();
  std::vector<double> optimum(state_.options.dimension);
  for (const Process* process : there) {
    const std::vector<float> target = state_.target_of(process->site);
    for (std::size_t i = 0; i < optimum.size(); ++i) {
      optimum[i] += static_cast<double>(target[i]);
    }
  }
  double sum = 0;
  for (const Process* process : there) {
    for (std::size_t i = 0; i < optimum.size(); ++i) {
      const double difference = static_cast<double>(process->node->parameters()[i]) -
                                optimum[i] / static_cast<double>(there.size());
      sum += difference * difference;
    }
  }
  return there.empty() ? 0 : std::sqrt(sum / static_cast<double>(there.size()));
}

}  // namespace sotto::sites
