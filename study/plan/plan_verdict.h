// The planner's conclusion from simulated runs, in plain words. Pure functions; thread-safe.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <sotto/study/plan/planned_run.h>
#include <sotto/study/plan/ranking.h>

namespace sotto::study {

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

/// A compressed run wins where it is better than the best uncompressed one by kWorthwhile in the
/// median, and with every seed. The candidate that says it is one is the baseline. Only runs with
/// the most seeds are ranked, and the baseline.
Verdict judge(const std::vector<PlannedRun>& runs, const Ranking& ranking, bool by_worst = false);

}  // namespace sotto::study
