// Runs beside each other as a table for people. Plain values; one thread at a time shows them.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <sotto/console/output.h>

namespace sotto::cli {

/// A table whose rows are runs, in their order; the first column names them.
struct RunTable {
  std::vector<std::string> titles;
  std::vector<std::vector<std::string>> rows;
  std::vector<std::string> notes;  ///< lines below it

  void add_note(std::string one) { notes.push_back(std::move(one)); }
};

/// Shows the table and its notes, an empty line in front.
void show_table(const RunTable& table, const console::Output& output);

}  // namespace sotto::cli
