// What `sotto compare` found, as tables for people and as JSON. Not thread-safe.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <sotto/console/output.h>
#include <sotto/study/json/comparison.h>

#include "repeated_run.h"

namespace sotto::cli {

/// Rows are the runs, in their order; the first column names them.
struct ComparisonTable {
  std::vector<std::string> titles;
  std::vector<std::vector<std::string>> rows;
  std::vector<std::string> notes;  ///< lines below it

  void add_note(std::string one) { notes.push_back(std::move(one)); }
};

/// The runs as they ended; and those that failed.
ComparisonTable ends_table(const std::vector<study::RepeatedRun>& runs);
/// The runs where all had spent as much as the thriftiest did in all; `expense` is not epochs.
ComparisonTable level_table(const std::vector<study::RepeatedRun>& runs, study::Expense expense);

void show_table(const ComparisonTable& table, const console::Output& output);

}  // namespace sotto::cli
