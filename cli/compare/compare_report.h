// What `sotto compare` found, as tables for people. Pure functions; thread-safe.
#pragma once

#include <vector>

#include <sotto/study/json/comparison.h>

#include "runs/repeated_run.h"
#include "runs/run_table.h"

namespace sotto::cli {

/// The runs as they ended; and those that failed.
RunTable ends_table(const std::vector<study::RepeatedRun>& runs);
/// The runs where all had spent as much as the thriftiest did in all; `expense` is not epochs.
RunTable level_table(const std::vector<study::RepeatedRun>& runs, study::Expense expense);

}  // namespace sotto::cli
