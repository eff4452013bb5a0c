// A rectangular table of numbers from a comma-separated file.
//
// Private to the loaders. Thread-safe.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sotto {

struct Table {
  std::filesystem::path path;
  std::vector<std::string> columns;
  std::vector<double> values;  ///< row-major

  std::size_t rows() const { return values.size() / columns.size(); }
  double at(std::size_t row, std::size_t column) const {
    return values[row * columns.size() + column];
  }
};

struct TableOptions {
  /// Rows may open with one field more than the header names; it is left out.
  bool row_numbers = false;
  /// A column to leave out; it need not hold numbers.
  std::string_view dropped;
};

/// Reads a table. Throws Error with file and line for a missing header, a row that is longer or
/// shorter than the header, an open quote, a field that is no finite number, and no rows at all.
Table read_table(const std::filesystem::path& path, const TableOptions& options = {});

}  // namespace sotto
