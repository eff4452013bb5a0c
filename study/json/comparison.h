// Runs beside each other, at an equal expense where that is asked for, and as JSON. Plain values
// and pure functions; thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <sotto/base/ids.h>
#include <sotto/study/json/equal_expense.h>
#include <sotto/study/json/finished_run.h>

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

/// An expense at which runs are set beside each other.
struct Level {
  Expense expense = Expense::epochs;
  double amount = 0;

  std::optional<Standing> of(const FinishedRun& run) const {
    return standing_at(expense, amount, run);
  }
};

/// What the run that spent the least had spent in all.
Level level_of(const std::vector<RepeatedRun>& runs, Expense expense);

/// The finished runs, one entry for each seed, and why the others are not there.
Json comparison_json(const std::vector<RepeatedRun>& runs, Expense expense);

}  // namespace sotto::study
