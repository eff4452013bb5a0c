#include <sotto/trainers/data/data_check.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <sotto/base/error.h>
#include <sotto/base/text.h>
#include <sotto/trainers/tasks/task_registry.h>

#include "loaders/table.h"
#include "loaders/table_request.h"
#include "loaders/table_roles.h"
#include "loaders/task_spec.h"
#include "loaders/text_lines.h"

namespace sotto {
namespace {

/// "1 3:0.5 7:1", but for comments.
bool looks_sparse(const TextFile& file) {
  TextLines lines(file);
  while (lines.next()) {
    const std::string_view line = trimmed(lines.line().substr(0, lines.line().find('#')));
    if (line.empty()) {
      continue;
    }
    const std::size_t blank = line.find_first_of(" \t");
    const std::string_view rest =
        trimmed(line.substr(std::min(blank == line.npos ? line.size() : blank, line.size())));
    const std::string_view second = rest.substr(0, rest.find_first_of(" \t"));
    const std::size_t colon = second.find(':');
    return colon != second.npos && colon > 0 && line.find(',') == line.npos &&
           (second.starts_with("qid:") || second.find_first_not_of("0123456789") == colon);
  }
  return false;
}

std::string task_of_file(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    const bool occupancy =
        std::filesystem::exists(std::filesystem::path(path) / "datatraining.txt", ignored);
    return fmt::format("{}:{}", occupancy ? "occupancy" : "mnist", path);
  }
  const TextFile file = read_text_file(path);
  if (trimmed(file.content.text).starts_with('{')) {
    return fmt::format("quadratic:{}", path);
  }
  return fmt::format("{}:{}", looks_sparse(file) ? "libsvm" : "csv", path);
}

bool is_task(std::string_view text) {
  std::error_code ignored;
  return !std::filesystem::exists(text, ignored) &&
         std::ranges::any_of(tasks(),
                             [text](const TaskInfo& info) { return info.name == task_name(text); });
}

std::string format_of(std::string_view task) {
  const std::string_view name = task_name(task);
  return name == "csv"         ? "a table"
         : name == "occupancy" ? "tables"
         : name == "libsvm"    ? "sparse rows (LIBSVM)"
         : name == "mnist"     ? "images (IDX)"
         : name == "text"      ? "a text"
         : name == "quadratic" ? "quadratics (JSON)"
         : name == "graph"     ? "ratings"
                               : "generated";
}

std::string held_by(const ColumnSurvey& column) {
  std::vector<std::string_view> kinds;
  for (const auto& [count, kind] : {std::pair(column.numbers, "numbers"),
                                    {column.booleans, "true and false"},
                                    {column.texts, "words"}}) {
    if (count > 0) {
      kinds.emplace_back(kind);
    }
  }
  return kinds.empty() ? "nothing" : fmt::format("{}", fmt::join(kinds, " and "));
}

void add_roles(const TableRoles& roles, DataCheck& check) {
  for (const std::size_t column : roles.features) {
    check.columns[column].role = "feature";
  }
  for (const std::size_t column : roles.targets) {
    check.columns[column].role = "target";
  }
  for (const LeftOut& one : roles.left_out) {
    check.columns[one.column].role = "left out: " + one.why;
  }
}

/// Finds the format and the columns of the table, as far as these can be seen.
void look_at_table(DataCheck& check) {
  const TableTask wanted = parse_table_task(check.task);
  const TextFile file = read_text_file(wanted.file);
  check.text = {.encoding = std::string(file.content.encoding),
                .gzip_members = file.content.gzip_members};
  const TableFile table = read_table(wanted.file, wanted.request);
  check.text->separator = table.layout.dialect.name();
  check.text->headerless = table.layout.headerless;
  check.rows = table.rows;
  for (const ColumnSurvey& column : table.columns) {
    ColumnFacts& facts = check.columns.emplace_back();
    facts.name = column.name;
    facts.holds = held_by(column);
    facts.missing = column.missing;
    if (column.numbers > 0) {
      facts.least = column.least;
      facts.largest = column.largest;
    }
  }
  add_roles(choose_roles(table, wanted.request), check);
}

void look_at_text(DataCheck& check) {
  const std::string_view name = task_name(check.task);
  if (name == "csv") {
    look_at_table(check);
  } else if (name == "libsvm") {
    const std::string path = check.task.substr(name.size() + 1);
    std::error_code ignored;
    if (std::filesystem::exists(path, ignored)) {
      const TextFile file = read_text_file(path);
      check.text = {.encoding = std::string(file.content.encoding),
                    .gzip_members = file.content.gzip_members};
    }
  }
}

void add_dataset(const Dataset& data, DataCheck& check) {
  check.features = data.features();
  check.image = data.image();
  check.train = data.train().size();
  check.test = data.test().size();
  check.targets = data.names().targets;
  check.target_scaling = data.target_scaling();
  check.warnings = data.warnings();
  for (int number = 0; number < data.classes(); ++number) {
    const auto at = static_cast<std::size_t>(number);
    check.classes.push_back({.name = at < data.names().classes.size() ? data.names().classes[at]
                                                                      : fmt::to_string(number)});
  }
  for (const std::int32_t label : data.train().labels()) {
    ++check.classes[static_cast<std::size_t>(label)].train;
  }
  for (const std::int32_t label : data.test().labels()) {
    ++check.classes[static_cast<std::size_t>(label)].test;
  }
}

}  // namespace

DataCheck check_data(std::string_view task_or_file, const SharedScaling* scaling) {
  DataCheck check;
  check.task =
      is_task(task_or_file) ? std::string(task_or_file) : task_of_file(std::string(task_or_file));
  check.format = format_of(check.task);
  try {
    look_at_text(check);
    const auto data = load_task(check.task, scaling);
    if (data->dataset) {
      add_dataset(*data->dataset, check);
    }
  } catch (const Error& error) {
    check.refusal = error.what();
  }
  return check;
}

}  // namespace sotto
