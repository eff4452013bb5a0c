// AIPerf's score of a run as JSON. A pure function; thread-safe.
#pragma once

#include <sotto/base/ids.h>
#include <sotto/study/json/figures.h>
#include <sotto/study/strategies/score.h>

namespace sotto::study {

/// What has been done of a run, and how well.
struct ScoredRun {
  Round rounds = 0;
  int nodes = 0;
  double seconds = 0;
  double accuracy = 0;  ///< NaN where the task has none
};

/// Floating-point operations of all nodes a second ("flops_per_s") and the regulated score of the
/// averaged model ("regulated", null where the task has no accuracy); null where they are not known
/// or no time has passed.
Json score_json(const ScoreTerms& terms, const ScoredRun& run);

}  // namespace sotto::study
