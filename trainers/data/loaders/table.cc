#include "table.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/base/text.h>

#include "file.h"

namespace sotto {
namespace {

constexpr std::size_t kMostColumns = 1 << 16;

FieldPlace place_of(std::string_view field, std::size_t line) {
  return {line, std::string(excerpt(field))};
}

void note(std::optional<FieldPlace>& first, std::string_view field, std::size_t line) {
  if (!first) {
    first = place_of(field, line);
  }
}

/// "1,234" may be one thousand and more; "0,234", "12,34" and "1,2345" are none.
bool could_be_thousands(std::string_view field) {
  const std::size_t comma = field.find(',');
  const std::size_t sign = field.starts_with('-') || field.starts_with('+') ? 1 : 0;
  const std::size_t before = comma - sign;
  return field.size() - comma == 4 && before >= 1 && before <= 3 && field[sign] != '0';
}

/// `sep=;`, as Excel writes it above the header.
std::optional<char> separator_line(std::string_view line) {
  constexpr std::string_view kSeparator = "sep=";
  const bool is_one = line.starts_with(kSeparator) && line.size() == kSeparator.size() + 1;
  return is_one ? std::optional(line.back()) : std::nullopt;
}

/// A comment above the header, "# made by hand"; a column may be called "#".
bool is_comment(std::string_view line, Dialect dialect) {
  const std::string_view words = trimmed(line);
  return words.starts_with('#') && (words.size() == 1 || words[1] != dialect.separator);
}

std::vector<std::string> split_names(const TextLines& lines, std::string_view line,
                                     Dialect dialect) {
  FieldSplitter splitter(dialect, kMostColumns);
  const auto& fields = splitter.split(line);
  if (!splitter.fault().empty()) {
    lines.refuse(splitter.fault());
  }
  return {fields.begin(), fields.end()};
}

void refuse_numbers_only(const TextLines& lines, const std::vector<std::string>& names,
                         const TableRequest& request) {
  const bool numbers = std::all_of(names.begin(), names.end(), [](const std::string& name) {
    const FieldKind kind = value_of(name).kind;
    return kind == FieldKind::number || kind == FieldKind::missing;
  });
  const bool nothing =
      std::all_of(names.begin(), names.end(), [](const std::string& name) { return name.empty(); });
  if (numbers && !nothing) {
    lines.refuse(fmt::format(
        "a header with the columns' names is expected; found numbers only: put names there{}",
        request.task.empty() ? "" : fmt::format(", or take {}", request.with("headerless"))));
  }
}

[[noreturn]] void refuse_empty(const TextFile& file) {
  refuse_file(file.path, "", "the file is empty; a header is expected");
}

/// Goes to the first line that is no comment, and finds the separator. NumPy writes the header
/// itself as a comment, which is then returned: it has one name for each field of the line.
std::vector<std::string> pass_comments(const TextFile& file, TextLines& lines,
                                       TableLayout& layout) {
  if (!lines.next()) {
    refuse_empty(file);
  }
  layout.dialect = find_dialect(file.content.text, "#");
  if (const auto separator = separator_line(trimmed(lines.line()))) {
    layout.dialect.separator = *separator;
    ++layout.skipped_lines;
    if (!lines.next()) {
      refuse_empty(file);
    }
  }
  std::string_view comment;
  while (is_comment(lines.line(), layout.dialect)) {
    comment = trimmed(lines.line()).substr(1);
    layout.header_line = lines.number();
    ++layout.skipped_lines;
    if (!lines.next()) {
      refuse_empty(file);
    }
  }
  const auto fields = split_names(lines, lines.line(), layout.dialect);
  const bool is_row = std::any_of(fields.begin(), fields.end(), [](const std::string& field) {
    return value_of(field).kind == FieldKind::number;
  });
  FieldSplitter splitter(layout.dialect, kMostColumns);
  const auto& names = splitter.split(comment);
  const bool is_header = is_row && !trimmed(comment).empty() && splitter.fault().empty() &&
                         names.size() == fields.size();
  return is_header ? std::vector<std::string>(names.begin(), names.end())
                   : std::vector<std::string>();
}

/// A first row with one field more than the header names has R's numbers of rows in front.
void name_row_numbers(const TextLines& lines, TableLayout& layout) {
  const auto first_row = split_names(lines, lines.line(), layout.dialect);
  if (first_row.size() != layout.names.size() + 1) {
    return;
  }
  if (first_row.back().empty()) {
    lines.refuse(fmt::format(
        "{} fields are expected; found {}, the last of them empty: end the header with a {} as "
        "well, or no line",
        layout.names.size(), first_row.size(), layout.dialect.name()));
  }
  layout.names.emplace(layout.names.begin());
}

/// "1 3:0.5 7:1" is no row of a table.
void refuse_sparse(const TextLines& lines, const std::vector<std::string>& names,
                   const TableRequest& request) {
  const auto is_entry = [](const std::string& field) {
    const std::size_t colon = field.find_first_not_of("0123456789");
    return colon != std::string::npos && colon > 0 && field[colon] == ':';
  };
  if (names.size() > 1 && value_of(names.front()).kind == FieldKind::number &&
      std::all_of(names.begin() + 1, names.end(), is_entry)) {
    lines.refuse(fmt::format(
        "a header is expected; found a sparse row, INDEX:VALUE{}",
        request.task.empty() ? "" : fmt::format(": take libsvm:{}", lines.path().string())));
  }
}

/// The layout, by the first lines.
TableLayout read_layout(const TextFile& file, const TableRequest& request) {
  TextLines lines(file);
  TableLayout layout;
  layout.headerless = request.headerless;
  layout.names = pass_comments(file, lines, layout);
  if (request.headerless) {
    layout.names = split_names(lines, lines.line(), layout.dialect);
    for (std::size_t i = 0; i < layout.names.size(); ++i) {
      layout.names[i] = fmt::to_string(i + 1);
    }
    return layout;
  }
  if (!layout.names.empty()) {
    return layout;
  }
  layout.names = split_names(lines, lines.line(), layout.dialect);
  layout.header_line = lines.number();
  ++layout.skipped_lines;
  refuse_numbers_only(lines, layout.names, request);
  refuse_sparse(lines, layout.names, request);
  if (lines.next()) {
    name_row_numbers(lines, layout);
  }
  return layout;
}

}  // namespace

std::string in_quotes(std::string_view name) { return fmt::format("'{}'", excerpt(name)); }

std::string column_called(const TableFile& table, std::size_t column) {
  const std::string& name = table.columns[column].name;
  return name.empty() ? fmt::format("column {}", column + 1)
                      : fmt::format("column {}", in_quotes(name));
}

void ColumnSurvey::add(std::string_view field, std::size_t line) {
  ++fields;
  const FieldValue value = value_of(field);
  switch (value.kind) {
    case FieldKind::missing:
      ++missing;
      note(first_missing, field, line);
      return;
    case FieldKind::boolean:
      ++booleans;
      break;
    case FieldKind::text:
      ++texts;
      note(first_text, field, line);
      return;
    case FieldKind::number:
      break;
  }
  const std::size_t before = numbers + (value.kind == FieldKind::boolean ? booleans - 1 : booleans);
  same = same && (before == 0 || value.number == largest);
  ascending = ascending && (before == 0 || value.number > largest);
  least = before == 0 ? value.number : std::min(least, value.number);
  largest = before == 0 ? value.number : std::max(largest, value.number);
  if (value.kind == FieldKind::boolean) {
    return;
  }
  ++numbers;
  if (value.number != std::floor(value.number)) {
    whole = false;
    note(first_fraction, field, line);
  }
  if (value.mark == '.') {
    note(first_point, field, line);
  } else if (value.mark == ',') {
    note(first_comma, field, line);
    commas_of_thousands = commas_of_thousands && could_be_thousands(field);
  }
}

TableRows::TableRows(const TextFile& file, const TableLayout& layout)
    : lines_(file), layout_(layout), splitter_(layout.dialect, kMostColumns) {
  for (std::size_t i = 0; i < layout_.skipped_lines; ++i) {
    lines_.next();
  }
}

bool TableRows::next() {
  do {
    if (!lines_.next()) {
      return false;
    }
    fields_ = &splitter_.split(lines_.line());
    if (!splitter_.fault().empty()) {
      lines_.refuse(splitter_.fault());
    }
  } while (std::ranges::all_of(*fields_, &std::string_view::empty));
  if (fields_->size() != layout_.names.size()) {
    lines_.refuse(fmt::format("{} fields are expected; found {}{}", layout_.names.size(),
                              fields_->size(),
                              fields_->size() > layout_.names.size()
                                  ? fmt::format("; a field that holds a {} stands in double quotes",
                                                layout_.dialect.name())
                                  : ""));
  }
  return true;
}

TableFile read_table(const std::filesystem::path& path, const TableRequest& request) {
  TableFile table{.file = read_text_file(path), .layout = {}, .columns = {}};
  table.layout = read_layout(table.file, request);
  table.columns.resize(table.layout.names.size());
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    table.columns[i].name = table.layout.names[i];
  }
  TableRows rows(table.file, table.layout);
  while (rows.next()) {
    for (std::size_t i = 0; i < table.columns.size(); ++i) {
      table.columns[i].add(rows.fields()[i], rows.line());
    }
    ++table.rows;
  }
  if (table.rows == 0) {
    refuse_file(path, "",
                request.headerless ? "there are no rows" : "there are no rows behind the header");
  }
  return table;
}

}  // namespace sotto
