// All runs of a scenario, one after the other. One call at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <sotto/base/status.h>
#include <sotto/study/scenario/scenario.h>
#include <sotto/study/simulation/simulated_run.h>

namespace sotto::study {

/// What became of a run of a scenario with one seed.
struct RunOutcome {
  std::string words;  ///< the run's words in the scenario
  std::string point;  ///< the sweep's point, "bandwidth=10 Mbit/s"; empty where there is no sweep
  std::string name;   ///< words and point, "dpsgd ring @ bandwidth=10 Mbit/s"
  std::uint64_t seed = 0;
  std::optional<SimulatedRun> run;  ///< the simulated run; none where it did not begin
  Status fault;                     ///< Fault::stopped where it did not begin, or was interrupted
};

/// One run with all its seeds, which stand in a row.
using SeedsOfRun = std::span<const RunOutcome>;

/// The outcomes of simulate_runs, run by run.
std::vector<SeedsOfRun> by_run(const std::vector<RunOutcome>& outcomes);

/// The names of all runs that simulate_runs plays, in their order: those of the scenario, or of
/// each of its sweep's points, "dpsgd ring @ bandwidth=10 Mbit/s"; of several seeds "dpsgd ring,
/// seed 2".
std::vector<std::string> names_of_runs(const Scenario& scenario, std::uint64_t seeds = 1);

/// Hears how far simulate_runs is; either may be empty.
struct RunsListener {
  std::function<void(std::size_t run)> begins;  ///< called when a run begins, counted from 0
  std::function<void(const RunOutcome& outcome)> ends;  ///< called when a run that began ends
};

/// Plans every run before the first one starts, so that a wrong one costs nothing. Gives what there
/// is to warn of, "RUN: …", with settings as the file has them. Throws Error, which names file,
/// line and key, for a run that is refused.
std::vector<std::string> check_runs(const Scenario& scenario);

/// Simulates a scenario's runs, in their order, of a swept one those of each point, and each with
/// `seeds` seeds: the scenario's and those that follow. Where `request.stop` interrupts one, those
/// that follow do not begin. Throws Error for a run that is refused (check_runs).
std::vector<RunOutcome> simulate_runs(const Scenario& scenario, const SimulationRequest& request,
                                      const RunsListener& listener = {}, std::uint64_t seeds = 1);

/// What stands for the figures of a run's seeds.
enum class SeedStatistic {
  first,  ///< the scenario's own seed
  mean,   ///< the mean over all seeds
};

/// Virtual seconds until the scenario's target or, where it has none, to the end
/// (time_that_counts). None where one of the seeds that are asked for has no such time.
std::optional<double> time_to_target(const Scenario& scenario, SeedsOfRun seeds,
                                     SeedStatistic statistic);

/// What a run spent until the scenario's target or, where it has none, in all; of several seeds the
/// means.
struct Spending {
  std::string name;
  std::string point = {};  ///< the sweep's point: runs of one point are compared
  double seconds = 0;
  double bytes_per_node = 0;
  double money = 0;
  bool beaten = false;  ///< another run spent no more in any respect, and less in one
};

/// What runs spent until the target; without those that missed it with one of their seeds, or ended
/// early. Money is 0 where nothing has a cost.
std::vector<Spending> spending_of(const Scenario& scenario,
                                  const std::vector<RunOutcome>& outcomes);

/// The names of those runs that no other of their point beats. Empty where nothing has a cost.
std::vector<std::string> unbeaten_runs(const Scenario& scenario,
                                       const std::vector<RunOutcome>& outcomes);

}  // namespace sotto::study
