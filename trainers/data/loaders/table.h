// A table in a text file: its layout, what is in its columns, and its rows.
//
// It is gone through twice: once to see what each column holds (a survey), and once to take the
// columns that are wanted, so that what is kept is numbers. Private to the loaders. A TableFile is
// immutable and may be shared; a TableRows is of one thread at a time.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sotto/base/delimited_text.h>
#include <sotto/trainers/data/loaders.h>

#include "field_value.h"
#include "text_lines.h"

namespace sotto {

/// A field that is worth showing.
struct FieldPlace {
  std::size_t line = 0;
  std::string text;  ///< the beginning of its text
};

/// The contents of a column, over all rows.
struct ColumnSurvey {
  std::string name;
  std::size_t fields = 0;
  std::size_t numbers = 0;
  std::size_t missing = 0;
  std::size_t booleans = 0;
  std::size_t texts = 0;
  double least = 0;
  double largest = 0;
  bool whole = true;      ///< all numbers are whole
  bool ascending = true;  ///< each number is larger than the one before
  bool same = true;       ///< all fields are alike
  std::optional<FieldPlace> first_missing;
  std::optional<FieldPlace> first_text;
  std::optional<FieldPlace> first_fraction;
  std::optional<FieldPlace> first_point;  ///< number with a decimal point
  std::optional<FieldPlace> first_comma;  ///< number with a decimal comma
  /// Every number with a comma could as well have it between thousands.
  bool commas_of_thousands = true;

  bool empty() const { return missing == fields; }
  bool numeric() const { return numbers + missing == fields && numbers > 0; }
  bool boolean() const { return booleans + missing == fields && booleans > 0; }
  /// Whole numbers, each larger than the one before: it numbers the rows.
  bool counts() const { return numbers == fields && whole && ascending; }

  void add(std::string_view field, std::size_t line);
};

/// How a table's lines are laid out.
struct TableLayout {
  Dialect dialect;
  /// Names of the columns; empty where the file has none for a column.
  std::vector<std::string> names;
  std::size_t header_line = 1;    ///< line of the names
  std::size_t skipped_lines = 0;  ///< lines in front of the first row, without blank ones
  bool headerless = false;
};

/// A table that was surveyed.
struct TableFile {
  TextFile file;
  TableLayout layout;
  std::vector<ColumnSurvey> columns;  ///< columns in the file's order
  std::size_t rows = 0;

  const std::filesystem::path& path() const { return file.path; }
};

/// A column's name as messages show it, in quotes and cut where it is long.
std::string in_quotes(std::string_view name);
/// "column 'age'"; a nameless one is called by its number.
std::string column_called(const TableFile& table, std::size_t column);

/// Reads and surveys a table; without a header its columns are called 1, 2, …. Throws Error with
/// file and line for a missing header, a row that is longer or shorter than the others, an open
/// quote, and no rows at all. Rows may open with one field more than the header names (as R writes
/// them); it becomes a first column without a name.
TableFile read_table(const std::filesystem::path& path, const TableRequest& request = {});

/// Walks over the rows of a table.
class TableRows {
 public:
  /// `file` and `layout` must outlive this object.
  TableRows(const TextFile& file, const TableLayout& layout);

  /// Goes to the next row; false at the end. Rows without any value, as spreadsheets write below a
  /// table, are passed over. Throws Error for one of another length.
  bool next();
  /// The fields of the row; valid until the next call.
  const std::vector<std::string_view>& fields() const { return *fields_; }
  std::size_t line() const { return lines_.number(); }

 private:
  TextLines lines_;
  const TableLayout& layout_;
  FieldSplitter splitter_;
  const std::vector<std::string_view>* fields_ = nullptr;
};

}  // namespace sotto
