// The results of several runs as one self-contained HTML page with curves. Not thread-safe.
#pragma once

#include <string>
#include <vector>

#include "compare_report.h"
#include "repeated_run.h"

namespace sotto::cli {

/// What curves are drawn against: a field of the histories.
struct PageAxis {
  const char* field;
  const char* label;
  bool logarithmic = false;
};

/// The tables, then loss and accuracy against each axis; with several seeds the means, in bands
/// from the lowest to the highest. `head` is the page's title; the line below it comes from the
/// first run that has a result, of which there is one at least.
std::string curves_page(const std::string& head, const std::vector<RepeatedRun>& runs,
                        const std::vector<ComparisonTable>& tables,
                        const std::vector<PageAxis>& axes);

/// The page of `sotto compare`: against rounds, bytes and time.
std::string compare_page(const std::vector<RepeatedRun>& runs,
                         const std::vector<ComparisonTable>& tables);

}  // namespace sotto::cli
