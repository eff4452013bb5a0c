// A candidate of the planner that was simulated, and the figures that it is ranked by. Plain values
// and pure functions; thread-safe.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <sotto/study/plan/plan_candidate.h>
#include <sotto/study/plan/ranking.h>
#include <sotto/study/simulation/simulated_run.h>

namespace sotto::study {

/// A candidate that was simulated.
struct PlannedRun {
  Candidate candidate;
  std::string label;  ///< the run's name, with short names for long graphs
  SimulatedRun simulated;
  /// Seconds to the target, by seed; none where that one did not reach it.
  std::vector<std::optional<double>> times = {};
  /// Money to the target, by seed; without a value where that one did not reach it, or nothing has
  /// a cost.
  std::vector<std::optional<double>> money = {};

  /// What the run is ranked by, by seed, until the target.
  const std::vector<std::optional<double>>& figures(const Ranking& ranking) const;

  /// Adds what a simulation with another seed spent until the target, linearly between the two
  /// evaluations round it: their distance would otherwise be the figures' resolution.
  void add_seed(const Target& target, const SimulationResult& result);
  /// None where the run ended early.
  std::optional<double> simulated_seconds_per_round() const;
  /// predicted / simulated − 1; none where the run ended early.
  std::optional<double> error() const;
};

/// The figure, the median over the seeds, of which one half at least must have reached the target;
/// none where the run did not, or where nodes ended early and the time of a round is asked for.
std::optional<double> figure_of(const PlannedRun& run, const Ranking& ranking);

/// "12.3 s", with several seeds "12.3 s (11.9 – 12.6)"; "–" where it has none.
std::string figure_text(const PlannedRun& run, const Ranking& ranking);

}  // namespace sotto::study
