// All runs of a scenario, one after the other. One call at a time.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <sotto/base/status.h>
#include <sotto/study/scenario/scenario.h>
#include <sotto/study/simulation/simulated_run.h>

namespace sotto::study {

/// What became of a run of a scenario.
struct RunOutcome {
  std::string name;
  std::optional<SimulatedRun> run;  ///< none where it failed, or was stopped
  Status fault;                     ///< why there is none
};

/// The names of all runs that simulate_runs plays, in their order: those of the scenario, or of
/// each of its sweep's points, "dpsgd ring @ bandwidth=10 Mbit/s".
std::vector<std::string> names_of_runs(const Scenario& scenario);

/// Hears how far simulate_runs is; either may be empty.
struct RunsListener {
  std::function<void(std::size_t run)> begins;          ///< a run, counted from 0
  std::function<void(const RunOutcome& outcome)> ends;  ///< a run that began
};

/// Plans every run before the first one starts, so that a wrong one costs nothing. Gives what there
/// is to warn of, "RUN: …", with settings as the file has them. Throws Error, which names file,
/// line and key, for a run that is refused.
std::vector<std::string> check_runs(const Scenario& scenario);

/// Simulates a scenario's runs, in their order, of a swept one those of each point. Where
/// `request.stop` ends one, those that follow do not begin: their fault, as that one's, is
/// Fault::stopped. Throws Error for a run that is refused (check_runs).
std::vector<RunOutcome> simulate_runs(const Scenario& scenario, const SimulationRequest& request,
                                      const RunsListener& listener = {});

/// The names of those runs that no other beats: none reaches the target, or its end where the
/// scenario has none, in no more time, bytes a node and money, and less of one of them. Empty where
/// nothing has a cost.
std::vector<std::string> unbeaten_runs(const Scenario& scenario,
                                       const std::vector<RunOutcome>& outcomes);

}  // namespace sotto::study
