// Comparisons as people and programs read them. Pure functions; thread-safe.
#pragma once

#include <string>
#include <vector>

#include <sotto/console/output.h>

#include "comparison.h"

namespace sotto::netlab {

/// All that a comparison found, for --json.
Json comparison_json(const Comparison& comparison);
/// The titles of a table of comparisons.
std::vector<std::string> comparison_titles();
/// A comparison's row in such a table.
std::vector<std::string> comparison_row(const Comparison& comparison);
/// A line for each node that did not finish: when and why by prediction, and in truth.
std::vector<std::string> fault_lines(const Comparison& comparison);

}  // namespace sotto::netlab
