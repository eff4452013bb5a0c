// Runs at an equal expense, as a table for people. A pure function; thread-safe.
#pragma once

#include <vector>

#include <sotto/study/comparison/equal_expense.h>
#include <sotto/study/comparison/repeated_run.h>

#include "run_table.h"

namespace sotto::cli {

/// The runs where all had spent as much as the thriftiest did in all; `expense` is not epochs.
RunTable level_table(const std::vector<study::RepeatedRun>& runs, study::Expense expense);

}  // namespace sotto::cli
