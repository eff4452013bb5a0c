// Runs beside each other as JSON. A pure function; thread-safe.
#pragma once

#include <vector>

#include <sotto/base/json.h>
#include <sotto/study/comparison/equal_expense.h>
#include <sotto/study/comparison/repeated_run.h>

namespace sotto::study {

/// The finished runs, one entry for each seed, and why the others are not there.
Json comparison_json(const std::vector<RepeatedRun>& runs, Expense expense);

}  // namespace sotto::study
