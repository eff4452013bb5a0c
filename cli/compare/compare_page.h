// The results of `sotto compare` as one self-contained HTML page. Not thread-safe.
#pragma once

#include <string>
#include <vector>

#include "runs/repeated_run.h"
#include "runs/run_table.h"

namespace sotto::cli {

/// The tables, and curves against rounds, bytes and time. At least one of `runs` has a result.
std::string compare_page(const std::vector<study::RepeatedRun>& runs,
                         const std::vector<RunTable>& tables);

}  // namespace sotto::cli
