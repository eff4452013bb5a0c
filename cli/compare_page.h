// The result of `sotto compare` as one self-contained HTML page with curves. Not thread-safe.
#pragma once

#include <string>
#include <vector>

#include "compare_report.h"
#include "repeated_run.h"

namespace sotto::cli {

/// The tables, then loss and accuracy against rounds, bytes and time; with several seeds the means,
/// in bands from the lowest to the highest. At least one run must have a result.
std::string compare_page(const std::vector<RepeatedRun>& runs,
                         const std::vector<ComparisonTable>& tables);

}  // namespace sotto::cli
