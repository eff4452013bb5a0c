#include "table.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/base/text.h>

#include "file.h"
#include "text_lines.h"

namespace sotto {
namespace {

constexpr std::size_t kMaxColumns = 1 << 16;

/// Takes the field in quotes at the start of `rest`; a doubled quote stands for one.
std::string take_quoted(const TextLines& lines, std::string_view& rest) {
  std::string field;
  std::size_t at = 1;
  for (;; ++at) {
    if (at >= rest.size()) {
      lines.refuse("a quote is not closed in this line");
    }
    if (rest[at] == '"') {
      if (at + 1 == rest.size() || rest[at + 1] != '"') {
        break;
      }
      ++at;
    }
    field.push_back(rest[at]);
  }
  rest = trimmed(rest.substr(at + 1));
  if (!rest.empty() && rest.front() != ',') {
    lines.refuse("a comma is expected behind a closing quote");
  }
  return field;
}

void split_fields(const TextLines& lines, std::vector<std::string>& fields) {
  fields.clear();
  std::string_view rest = lines.line();
  for (;;) {
    rest = trimmed(rest);
    if (rest.starts_with('"')) {
      fields.push_back(take_quoted(lines, rest));
    } else {
      const std::size_t comma = std::min(rest.find(','), rest.size());
      fields.emplace_back(trimmed(rest.substr(0, comma)));
      rest.remove_prefix(comma);
    }
    if (fields.size() > kMaxColumns) {
      lines.refuse(fmt::format("more than {} columns", kMaxColumns));
    }
    if (rest.empty()) {
      return;
    }
    rest.remove_prefix(1);  // the comma
  }
}

std::vector<std::string> read_header(TextLines& lines) {
  if (!lines.next()) {
    refuse_file(lines.path(), "", "the file is empty; a header is expected");
  }
  std::vector<std::string> names;
  split_fields(lines, names);
  double number = 0;
  if (std::all_of(names.begin(), names.end(),
                  [&](const std::string& name) { return parse_number(name, number); })) {
    lines.refuse("a header with the columns' names is expected; found numbers only");
  }
  return names;
}

}  // namespace

Table read_table(const std::filesystem::path& path, const TableOptions& options) {
  TextLines lines(path);
  const std::vector<std::string> header = read_header(lines);
  Table table{.path = path, .columns = {}, .values = {}};
  std::vector<std::size_t> kept;
  for (std::size_t i = 0; i < header.size(); ++i) {
    if (options.dropped.empty() || header[i] != options.dropped) {
      kept.push_back(i);
      table.columns.push_back(header[i]);
    }
  }
  std::vector<std::string> fields;
  std::optional<std::size_t> extra;  // fields in front that the header does not name
  while (lines.next()) {
    split_fields(lines, fields);
    if (!extra) {
      extra = options.row_numbers && fields.size() == header.size() + 1 ? 1 : 0;
    }
    if (fields.size() != header.size() + *extra) {
      lines.refuse(
          fmt::format("{} fields are expected; found {}", header.size() + *extra, fields.size()));
    }
    for (const std::size_t column : kept) {
      table.values.push_back(lines.number(fields[column + *extra],
                                          fmt::format("column '{}'", excerpt(header[column]))));
    }
  }
  if (table.values.empty()) {
    refuse_file(path, "", "there are no rows behind the header");
  }
  return table;
}

}  // namespace sotto
