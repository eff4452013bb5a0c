// The planner's conclusion from simulated runs, in plain words. Pure functions; thread-safe.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sotto/study/plan/plan_candidates.h>
#include <sotto/study/simulation/simulated_run.h>

namespace sotto::study {

/// How far a run has to get.
enum class Goal {
  target,  ///< the run reaches the scenario's target
  epoch,   ///< the run gets through a round, and so through each pass over the data
};

/// The figure by which runs are ranked, the less the better.
struct Ranking {
  Goal goal = Goal::target;
  bool money = false;  ///< rank by what all nodes cost until then, not by virtual seconds
  std::string currency = {};

  /// "12.3 s", "0.42 EUR"
  std::string text(double figure) const;
  /// "sooner", "cheaper"
  const char* better() const { return money ? "cheaper" : "sooner"; }
};

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

/// A gain counts only above this factor, the accuracy of a prediction.
inline constexpr double kWorthwhile = 1.05;

/// The winning run, and the conclusion in words.
struct Verdict {
  /// Index of the run that won; none: no run reached the target.
  std::optional<std::size_t> winner;
  bool compress = false;
  std::optional<double> over_allreduce;  ///< factor by which the winner is better than `allreduce`
  /// Factor by which the winner is better than the best run without compression.
  std::optional<double> over_best_uncompressed;
  std::vector<std::string> lines;
};

/// The figure, the median over the seeds, of which one half at least must have reached the target;
/// none where the run did not, or where nodes ended early and the pace is asked for.
std::optional<double> figure_of(const PlannedRun& run, const Ranking& ranking);

/// A compressed run wins where it is better than the best uncompressed one by kWorthwhile in the
/// median, and with every seed. The candidate that says it is one is the baseline. Only runs with
/// the most seeds are ranked, and the baseline.
Verdict judge(const std::vector<PlannedRun>& runs, const Ranking& ranking, bool by_worst = false);

/// "12.3 s", with several seeds "12.3 s (11.9 – 12.6)"; "–" where it has none.
std::string figure_text(const PlannedRun& run, const Ranking& ranking);

}  // namespace sotto::study
