// What the planner concludes from simulated runs, in plain words. Pure functions; thread-safe.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "output.h"
#include "plan_candidates.h"

namespace sotto::cli {

/// A candidate that was simulated to its end.
struct PlannedRun {
  Candidate candidate;
  Json result;  ///< its entry of `sotto simulate --json`

  /// None where it ended early: what is left says nothing of a round.
  std::optional<double> seconds_per_round() const;
  /// predicted / simulated − 1
  std::optional<double> error() const;
};

/// By what runs are ranked.
enum class Goal {
  target,  ///< virtual seconds to the scenario's target
  epoch,   ///< seconds a round, and so for each pass over the data
};

/// What is gained has to be more than this factor: a prediction is good for no more.
inline constexpr double kWorthwhile = 1.05;

struct Verdict {
  std::optional<std::size_t> winner;  ///< none: no run reached the target, or came to its end
  bool compress = false;
  std::optional<double> over_allreduce;          ///< how many times sooner than `allreduce`
  std::optional<double> over_best_uncompressed;  ///< and than the best run that sends all bits
  std::vector<std::string> lines;
};

/// Seconds; none where the run did not reach the target, or did not come to its end.
std::optional<double> time_of(const PlannedRun& run, Goal goal);

/// A compressed run wins where it is sooner than each uncompressed one by kWorthwhile. The run
/// whose words are "allreduce" is the baseline.
Verdict judge(const std::vector<PlannedRun>& runs, Goal goal);

/// A `sotto train` that does this run of the scenario, with the scenario's own settings.
std::string train_command(const std::string& words, const Scenario& scenario);

}  // namespace sotto::cli
