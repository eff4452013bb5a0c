#include "table_roles.h"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <sotto/base/error.h>
#include <sotto/base/names.h>
#include <sotto/base/text.h>

#include "file.h"

namespace sotto {
namespace {

/// The usual names of a column to be predicted, in any case.
constexpr std::array<std::string_view, 3> kTargetNames = {"label", "class", "target"};

/// "Unnamed: 0" is what pandas calls a column that had no name.
bool is_nameless(const std::string& name) { return name.empty() || name.starts_with("Unnamed: "); }

[[noreturn]] void refuse_header(const TableFile& table, std::string_view reason) {
  refuse_file(table.path(), fmt::format("line {}", table.layout.header_line), reason);
}

/// The columns that nothing is known of yet, and what becomes of them. Tables may have tens of
/// thousands of columns: a look takes the same time for any number of them.
class Columns {
 public:
  explicit Columns(const TableFile& table) : table_(table), left_out_(table.columns.size()) {
    for (std::size_t i = 0; i < table.columns.size(); ++i) {
      const std::string& name = table.columns[i].name;
      by_name_[name].push_back(i);
      by_small_name_[small_letters(name)].push_back(i);
    }
  }

  /// The columns called `name`: exactly so, else the one that differs in capital letters
  /// alone, if there is one. `parameter` is for the message.
  const std::vector<std::size_t>& called(std::string_view parameter,
                                         const std::string& name) const {
    if (const auto found = by_name_.find(name); found != by_name_.end()) {
      return found->second;
    }
    const auto alike = by_small_name_.find(small_letters(name));
    if (alike == by_small_name_.end() || alike->second.size() != 1) {
      refuse_name(parameter, name);
    }
    return alike->second;
  }

  bool is_left_out(std::size_t column) const { return left_out_[column]; }
  void leave_out(TableRoles& roles, LeftOut one) {
    left_out_[one.column] = true;
    roles.left_out.push_back(std::move(one));
  }

  void refuse_twins() const {
    // The twin that stands first in the file is told of.
    std::optional<std::pair<std::size_t, std::size_t>> first;
    for (const auto& [name, places] : by_name_) {
      std::optional<std::size_t> before;
      for (const std::size_t place : places) {
        if (is_left_out(place)) {
          continue;
        }
        if (before && (!first || place < first->second)) {
          first = {*before, place};
        }
        if (before) {
          break;
        }
        before = place;
      }
    }
    if (first) {
      refuse_header(table_, fmt::format("columns {} and {} are both called {}; a column's name "
                                        "stands once",
                                        first->first + 1, first->second + 1,
                                        in_quotes(table_.columns[first->first].name)));
    }
  }

 private:
  [[noreturn]] void refuse_name(std::string_view parameter, const std::string& name) const {
    constexpr std::size_t kShown = 20;
    const auto names = names_of(table_.columns);
    const std::vector<std::string> shown(
        names.begin(), names.begin() + static_cast<std::ptrdiff_t>(std::min(kShown, names.size())));
    refuse_file(
        table_.path(), "",
        fmt::format(
            "{}={}: there is no such column{} there are {}{}", parameter, excerpt(name),
            did_you_mean(name, names), fmt::join(shown, ", "),
            names.size() > kShown ? fmt::format(" and {} more", names.size() - kShown) : ""));
  }

  const TableFile& table_;
  std::map<std::string, std::vector<std::size_t>, std::less<>> by_name_;
  std::map<std::string, std::vector<std::size_t>, std::less<>> by_small_name_;
  std::vector<bool> left_out_;
};

/// A first line that is a row: it has fractions, numbers that do not count, or what stands below.
void refuse_missing_header(const TableFile& table, const TableRequest& request) {
  const auto refuse_name = [&](const std::string& name, std::string_view what) {
    refuse_header(
        table,
        fmt::format(
            "{} {} where a column's name is expected: does the file lack its header? Put "
            "one there{}",
            in_quotes(name), what,
            request.task.empty() ? "" : fmt::format(", or take {}", request.with("headerless"))));
  };
  std::optional<double> before;
  for (const ColumnSurvey& column : table.columns) {
    const FieldValue value = value_of(column.name);
    if (value.kind == FieldKind::number) {
      if (value.mark != 0 || (before && value.number <= *before)) {
        refuse_name(column.name, "is a number");
      }
      before = value.number;
    }
  }
  TableRows rows(table.file, table.layout);
  constexpr std::size_t kLooked = 1000;
  for (std::size_t row = 0; row < kLooked && rows.next(); ++row) {
    for (std::size_t i = 0; i < table.columns.size(); ++i) {
      const ColumnSurvey& column = table.columns[i];
      if (column.texts == column.fields && !column.name.empty() &&
          rows.fields()[i] == column.name) {
        refuse_name(column.name, fmt::format("also stands in line {}", rows.line()));
      }
    }
  }
}

/// Leaves columns out that the user named.
void leave_out_dropped(const TableFile& table, const TableRequest& request, Columns& columns,
                       TableRoles& roles) {
  for (const std::string& name : request.drop) {
    // Twins too: there is no other way to be rid of them.
    for (const std::size_t column : columns.called("drop", name)) {
      if (columns.is_left_out(column)) {
        refuse_file(table.path(), "",
                    fmt::format("drop={}: {} is left out already, by another drop; name it once",
                                excerpt(name), column_called(table, column)));
      }
      columns.leave_out(roles, {column, "it was to be left out", /*asked=*/true});
    }
  }
}

/// Why a column without a name is refused: a title above the header leaves most without one.
std::string nameless_text(const TableFile& table, std::size_t column) {
  const std::size_t columns = table.columns.size();
  const auto named = columns - static_cast<std::size_t>(std::ranges::count(
                                   table.columns, std::string(), &ColumnSurvey::name));
  return columns > 2 && 2 * named < columns
             ? fmt::format(
                   "{} of {} columns have a name there: if it is a title, take it out of "
                   "the file, as the header comes first",
                   named, columns)
             : fmt::format("column {} has no name; give it one, or take the column out",
                           column + 1);
}

/// Leaves columns out that nobody named, or that hold nothing.
void leave_out_nameless(const TableFile& table, Columns& columns, TableRoles& roles) {
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    const ColumnSurvey& column = table.columns[i];
    if (columns.is_left_out(i)) {
      continue;
    }
    if (column.empty()) {
      columns.leave_out(roles, {i, "it is empty"});
    } else if (!is_nameless(column.name)) {
      continue;
    } else if (column.counts()) {
      columns.leave_out(roles, {i, "it has no name of its own and numbers the rows"});
    } else if (i == 0 && column.texts == column.fields) {
      columns.leave_out(roles, {i, "it has no name and names the rows"});
    } else if (column.name.empty()) {
      refuse_header(table, nameless_text(table, i));
    }
  }
}

/// The column to be predicted where the user names none.
std::size_t find_target(const TableFile& table, const TableRequest& request, const Columns& columns,
                        TableRoles& roles) {
  std::optional<std::size_t> found;
  std::optional<std::size_t> last;
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    if (columns.is_left_out(i)) {
      continue;
    }
    last = i;
    const std::string name = small_letters(table.columns[i].name);
    if (std::find(kTargetNames.begin(), kTargetNames.end(), name) == kTargetNames.end()) {
      continue;
    }
    if (found) {
      const std::string& first = table.columns[*found].name;
      refuse_header(
          table, fmt::format("both {} and {} could be what is to be predicted; {}",
                             in_quotes(first), in_quotes(table.columns[i].name),
                             request.task.empty()
                                 ? "take one of them out"
                                 : fmt::format("say which, as {}", request.with("target", first))));
    }
    found = i;
  }
  roles.found_by_name = found.has_value();
  if (!last) {
    refuse_header(table, "at least one feature and a label are expected");
  }
  return found.value_or(*last);
}

/// The columns to be predicted that the user named, into `roles`.
void take_targets(const TableFile& table, const TableRequest& request, const Columns& columns,
                  TableRoles& roles) {
  std::set<std::size_t> taken;
  for (const std::string& name : request.targets) {
    const std::size_t column = columns.called("target", name).front();
    if (columns.is_left_out(column)) {
      refuse_file(
          table.path(), "",
          fmt::format("{} is to be predicted, and left out: {}", column_called(table, column),
                      std::ranges::find(roles.left_out, column, &LeftOut::column)->why));
    }
    if (!taken.insert(column).second) {
      refuse_file(table.path(), "", fmt::format("target={} is given twice", excerpt(name)));
    }
    roles.targets.push_back(column);
    roles.found_by_name = true;
  }
  if (roles.targets.size() > 1 && !request.regression) {
    refuse_file(
        table.path(), "",
        fmt::format("{} columns are to be predicted; classes are in one column, and several "
                    "are for a regression, {}",
                    roles.targets.size(), request.with("regression")));
  }
}

}  // namespace

TableRoles choose_roles(const TableFile& table, const TableRequest& request) {
  TableRoles roles;
  if (!table.layout.headerless) {
    refuse_missing_header(table, request);
  }
  Columns columns(table);
  leave_out_dropped(table, request, columns, roles);
  leave_out_nameless(table, columns, roles);
  columns.refuse_twins();
  take_targets(table, request, columns, roles);
  if (roles.targets.empty()) {
    roles.targets.push_back(find_target(table, request, columns, roles));
  }
  const std::set<std::size_t> targets(roles.targets.begin(), roles.targets.end());
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    if (!columns.is_left_out(i) && !targets.contains(i)) {
      roles.features.push_back(i);
    }
  }
  if (roles.features.empty()) {
    refuse_header(table, "at least one feature and a label are expected");
  }
  return roles;
}

bool lacks_value(const std::vector<std::string_view>& fields, const TableRoles& roles) {
  const auto is_missing = [&](std::size_t column) {
    return value_of(fields[column]).kind == FieldKind::missing;
  };
  return std::any_of(roles.features.begin(), roles.features.end(), is_missing) ||
         std::any_of(roles.targets.begin(), roles.targets.end(), is_missing);
}

}  // namespace sotto
