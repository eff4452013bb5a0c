// By what the planner ranks runs. Plain values and pure functions; thread-safe.
#pragma once

#include <string>

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

}  // namespace sotto::study
