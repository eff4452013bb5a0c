// A run with each of its seeds, whether they finished or not. Plain values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <sotto/base/ids.h>
#include <sotto/study/comparison/finished_run.h>

namespace sotto::study {

/// A run without a result.
struct FailedRun {
  std::uint64_t seed = 0;
  std::string why = {};
  bool stopped = false;  ///< it was interrupted, or not begun, and `why` says which
};

/// One run of a comparison, with each of its seeds.
struct RepeatedRun {
  std::string words;
  Round rounds = 0;
  std::uint64_t seeds = 1;                ///< number of seeds that were asked for
  std::vector<FinishedRun> results = {};  ///< results of the seeds that finished, by seed
  std::vector<FailedRun> failures = {};   ///< seeds that failed, or were not run

  bool several() const { return seeds > 1; }
};

}  // namespace sotto::study
