#include "column_checks.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <sotto/base/error.h>

#include "file.h"

namespace sotto {
namespace {

/// The columns of `columns` for which `is_bad` holds, but for the first: "; as are 'a' and 'b'".
template <typename IsBad>
std::string others(const TableFile& table, const std::vector<std::size_t>& columns,
                   const IsBad& is_bad) {
  constexpr std::size_t kShown = 10;
  std::vector<std::string> names;
  std::size_t count = 0;
  for (const std::size_t column : columns) {
    if (is_bad(table.columns[column]) && ++count > 1 && names.size() < kShown) {
      names.push_back(in_quotes(table.columns[column].name));
    }
  }
  if (names.empty()) {
    return "";
  }
  const std::size_t more = count - 1 - names.size();
  return fmt::format("; so with {}{}", fmt::join(names, ", "),
                     more > 0 ? fmt::format(" and {} more", more) : "");
}

/// "; leave the column out with csv:data.csv,drop=city".
std::string how_to_drop(const TableRequest& request, const std::string& name) {
  constexpr std::size_t kLongestTyped = 500;  // a longer one makes no option to be typed
  return request.task.empty() || name.size() > kLongestTyped
             ? std::string("; take the column out of the file")
             : fmt::format("; leave the column out with {}", request.with("drop", name));
}

[[noreturn]] void refuse_field(const TableFile& table, std::size_t column, const FieldPlace& place,
                               std::string_view reason) {
  refuse_file(
      table.path(), fmt::format("line {}", place.line),
      fmt::format("{}: {} {}", column_called(table, column), in_quotes(place.text), reason));
}

/// Neither numbers throughout nor true and false throughout.
bool is_wordy(const ColumnSurvey& column) {
  return column.texts > 0 || (column.numbers > 0 && column.booleans > 0);
}

/// A column of numbers that has some words, or of words.
void check_number_column(const TableFile& table, const TableRequest& request,
                         const std::vector<std::size_t>& columns, std::size_t index, bool target) {
  const ColumnSurvey& column = table.columns[index];
  if (!is_wordy(column)) {
    return;
  }
  if (!column.first_text) {
    refuse_file(table.path(), "",
                fmt::format("{}: true and false stand among numbers; write 1 and 0",
                            column_called(table, index)));
  }
  const bool mostly_numbers = column.numbers > column.texts;
  const std::string& text = column.first_text->text;
  if (text == column.name) {
    refuse_field(table, index, *column.first_text,
                 "is the column's name: does the header stand there again? Take such lines out");
  }
  const std::string why = why_no_number(text);
  if (target) {
    refuse_field(
        table, index, *column.first_text,
        mostly_numbers
            ? fmt::format("{}, where the column has numbers; put it right", why)
            : fmt::format("{}, and targets of a regression are numbers; words are classes: "
                          "leave `regression` out",
                          why));
  }
  refuse_field(table, index, *column.first_text,
               mostly_numbers
                   ? fmt::format("{}, where the column has numbers; put it right{}", why,
                                 how_to_drop(request, column.name))
                   : fmt::format("{}, and features are numbers{}, or write it as numbers{}{}", why,
                                 how_to_drop(request, column.name),
                                 why == kIsText ? ", e.g. a column of 0 and 1 for each word" : "",
                                 others(table, columns, is_wordy)));
}

void check_missing(const TableFile& table, const TableRequest& request,
                   const std::vector<std::size_t>& columns, std::size_t index, bool target) {
  const ColumnSurvey& column = table.columns[index];
  if (column.missing == 0 || request.skip_missing) {
    return;
  }
  const auto has_missing = [](const ColumnSurvey& one) { return one.missing > 0; };
  refuse_field(table, index, *column.first_missing,
               fmt::format("{}: a value is missing there, as in {} of {} rows; fill them in{}{}{}",
                           column.first_missing->text.empty() ? "is empty" : "is no value",
                           column.missing, table.rows,
                           request.task.empty() ? ""
                                                : fmt::format(", leave such rows out with {}",
                                                              request.with("skip-missing")),
                           target ? "" : how_to_drop(request, column.name),
                           others(table, columns, has_missing)));
}

/// Commas may set thousands apart, where they also set fields apart or points are decimal marks.
void check_marks(const TableFile& table, const std::vector<std::size_t>& columns) {
  std::optional<std::size_t> point;
  std::optional<std::size_t> comma;
  for (const std::size_t i : columns) {
    point = !point && table.columns[i].first_point ? std::optional(i) : point;
    comma = !comma && table.columns[i].first_comma ? std::optional(i) : comma;
  }
  if (!comma) {
    return;
  }
  const FieldPlace& with_comma = *table.columns[*comma].first_comma;
  if (table.layout.dialect.separator == ',') {
    refuse_field(table, *comma, with_comma,
                 "has a comma, in a file whose fields are set apart by commas; write 1234 for a "
                 "thousand, and a decimal point");
  }
  if (point) {
    const FieldPlace& with_point = *table.columns[*point].first_point;
    refuse_field(table, *comma, with_comma,
                 fmt::format("has a comma, and {} in line {} a point; write numbers with one "
                             "decimal mark and without thousands separators",
                             in_quotes(with_point.text), with_point.line));
  }
}

}  // namespace

void check_columns(const TableFile& table, const TableRoles& roles, const TableRequest& request) {
  for (const std::size_t index : roles.features) {
    check_number_column(table, request, roles.features, index, /*target=*/false);
  }
  if (request.regression) {
    for (const std::size_t index : roles.targets) {
      check_number_column(table, request, roles.targets, index, /*target=*/true);
    }
  }
  std::vector<std::size_t> used = roles.features;
  used.insert(used.end(), roles.targets.begin(), roles.targets.end());
  for (const std::size_t index : used) {
    const bool target = std::ranges::find(roles.targets, index) != roles.targets.end();
    check_missing(table, request, used, index, target);
  }
  std::vector<std::size_t> numbers = roles.features;
  for (const std::size_t index : roles.targets) {
    if (table.columns[index].numeric()) {
      numbers.push_back(index);
    }
  }
  check_marks(table, numbers);
}

}  // namespace sotto
