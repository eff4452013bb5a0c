// What `sotto compare` found, as a table for people. A pure function; thread-safe.
#pragma once

#include <vector>

#include <sotto/study/comparison/repeated_run.h>

#include "runs/run_table.h"

namespace sotto::cli {

/// The runs as they ended; and those that failed.
RunTable ends_table(const std::vector<study::RepeatedRun>& runs);

}  // namespace sotto::cli
