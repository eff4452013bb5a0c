#include "table_warnings.h"

#include <algorithm>
#include <array>
#include <functional>
#include <iterator>
#include <optional>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <sotto/base/error.h>

namespace sotto {
namespace {

constexpr std::size_t kFewestRows = 5;  ///< fewest rows that prove anything

/// "column 'age'", "columns 'age', 'size' and 3 more"
std::string columns_called(const TableFile& table, const std::vector<std::size_t>& columns) {
  constexpr std::size_t kShown = 5;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < std::min(kShown, columns.size()); ++i) {
    const std::string& name = table.columns[columns[i]].name;
    names.push_back(name.empty() ? fmt::format("number {}", columns[i] + 1)
                                 : fmt::format("'{}'", excerpt(name)));
  }
  return fmt::format(
      "{} {}{}", columns.size() == 1 ? "column" : "columns", fmt::join(names, ", "),
      columns.size() > kShown ? fmt::format(" and {} more", columns.size() - kShown) : "");
}

/// Collects warnings about one table.
class Warner {
 public:
  Warner(const TableFile& table, std::vector<std::string>& warnings)
      : table_(table), warnings_(warnings) {}

  void warn(const std::string& text) {
    warnings_.push_back(fmt::format("{}: {}", table_.path().string(), text));
  }
  void warn_of(const std::vector<std::size_t>& columns, std::string_view what) {
    if (!columns.empty()) {
      warn(fmt::format("{}: {}", columns_called(table_, columns), what));
    }
  }
  /// Warns of the columns for which `is_odd` holds.
  void warn_where(const std::vector<std::size_t>& columns,
                  const std::function<bool(const ColumnSurvey&)>& is_odd, std::string_view what) {
    std::vector<std::size_t> odd;
    std::copy_if(columns.begin(), columns.end(), std::back_inserter(odd),
                 [&](std::size_t column) { return is_odd(table_.columns[column]); });
    warn_of(odd, what);
  }

 private:
  const TableFile& table_;
  std::vector<std::string>& warnings_;
};

void warn_of_left_out(const TableRoles& roles, Warner& warner) {
  std::set<std::string> whys;
  for (const LeftOut& one : roles.left_out) {
    if (one.asked || !whys.insert(one.why).second) {
      continue;
    }
    std::vector<std::size_t> columns;
    for (const LeftOut& other : roles.left_out) {
      if (!other.asked && other.why == one.why) {
        columns.push_back(other.column);
      }
    }
    warner.warn_of(columns, "left out: " + one.why);
  }
}

/// Whole numbers that ascend may be those of the rows.
void warn_of_row_numbers(const TableFile& table, const TableRoles& roles,
                         const TableRequest& request, Warner& warner) {
  std::vector<std::size_t> columns;
  std::ranges::copy_if(roles.features, std::back_inserter(columns), [&](std::size_t column) {
    return table.columns[column].counts() && !table.columns[column].same;
  });
  const std::string dropped = columns.size() == 1 ? table.columns[columns.front()].name : "COLUMN";
  warner.warn_of(columns,
                 fmt::format("whole numbers that ascend from row to row: if they number the rows, "
                             "leave them out{}",
                             request.task.empty() ? "" : ", as " + request.with("drop", dropped)));
}

/// The number that stands for missing values in a column, if one seems to: -9, 99 and longer ones
/// with nines alone, several times, and further from all others than these are from each other.
std::optional<double> missing_code(std::span<const double> features, std::size_t width,
                                   std::size_t k) {
  constexpr std::array<double, 9> kCodes = {-9, -99, -999, -9999, -99999, 99, 999, 9999, 99999};
  for (const double code : kCodes) {
    std::size_t count = 0;
    std::optional<double> least;
    std::optional<double> largest;
    for (std::size_t at = k; at < features.size(); at += width) {
      if (features[at] == code) {
        ++count;
        continue;
      }
      least = least ? std::min(*least, features[at]) : features[at];
      largest = largest ? std::max(*largest, features[at]) : features[at];
    }
    if (count < 2 || !least || *least == *largest) {
      continue;
    }
    const double gap = code < 0 ? *least - code : code - *largest;
    if (gap > *largest - *least) {
      return code;
    }
  }
  return std::nullopt;
}

/// Whether the values of column `k` of `features` name the classes.
bool names_classes(std::span<const double> features, std::size_t width, std::size_t k,
                   std::span<const std::int32_t> labels) {
  const auto classes = static_cast<std::size_t>(*std::max_element(labels.begin(), labels.end()));
  std::vector<std::optional<double>> value_of_class(classes + 1);
  for (std::size_t row = 0; row < labels.size(); ++row) {
    const double value = features[row * width + k];
    auto& known = value_of_class[static_cast<std::size_t>(labels[row])];
    if (known && *known != value) {
      return false;
    }
    known = value;
  }
  std::set<double> distinct;
  return std::all_of(value_of_class.begin(), value_of_class.end(),
                     [&](const auto& value) { return !value || distinct.insert(*value).second; });
}

}  // namespace

std::vector<std::string> warnings_of(const TableFile& table, const TableRoles& roles,
                                     const TableRequest& request) {
  std::vector<std::string> warnings;
  Warner warner(table, warnings);
  if (table.file.content.encoding == "Windows-1252") {
    warner.warn("it is not UTF-8, and read as Windows-1252");
  }
  if (!request.task.empty()) {  // of other tasks' files it is known what is left out
    warn_of_left_out(roles, warner);
  }
  if (table.rows >= kFewestRows) {
    warner.warn_where(
        roles.features, [](const ColumnSurvey& column) { return column.same; },
        "the same in all rows, so that nothing can be learned of it");
    warn_of_row_numbers(table, roles, request, warner);
  }
  const auto is_ambiguous = [&](const ColumnSurvey& column) {
    return column.first_comma && column.commas_of_thousands;
  };
  warner.warn_where(roles.features, is_ambiguous,
                    "commas are read as decimal marks, and could be thousands separators");
  for (const std::size_t column : roles.targets) {
    const ColumnSurvey& survey = table.columns[column];
    if (!request.regression && survey.numbers > survey.texts && survey.first_text) {
      warner.warn_of({column}, fmt::format("classes are numbers but for words such as '{}' in line "
                                           "{}",
                                           survey.first_text->text, survey.first_text->line));
    }
  }
  if (request.skip_missing) {
    const auto has_missing = [](const ColumnSurvey& column) { return column.missing > 0; };
    warner.warn_where(roles.features, has_missing, "rows without a value there are left out");
    warner.warn_where(roles.targets, has_missing, "rows without a value there are left out");
  }
  return warnings;
}

void warn_of_missing_codes(const TableFile& table, const TableRoles& roles,
                           std::span<const double> features, std::vector<std::string>& warnings) {
  const std::size_t width = roles.features.size();
  for (std::size_t k = 0; k < width && table.rows >= kFewestRows; ++k) {
    if (const auto code = missing_code(features, width, k)) {
      Warner(table, warnings)
          .warn_of({roles.features[k]},
                   fmt::format("{} stands far from all other values several times: if it is for "
                               "missing ones, leave those fields empty",
                               *code));
    }
  }
}

void warn_of_copied_label(const TableFile& table, const TableRoles& roles,
                          std::span<const double> features, std::span<const std::int32_t> labels,
                          std::vector<std::string>& warnings) {
  const std::size_t width = roles.features.size();
  const std::set<std::int32_t> classes(labels.begin(), labels.end());
  if (labels.size() < std::max(kFewestRows, 2 * classes.size())) {
    return;
  }
  std::vector<std::size_t> copies;
  for (std::size_t k = 0; k < width; ++k) {
    if (!table.columns[roles.features[k]].same && names_classes(features, width, k, labels)) {
      copies.push_back(roles.features[k]);
    }
  }
  Warner(table, warnings)
      .warn_of(copies,
               fmt::format("a value for each class of {}: a copy of what is to be predicted",
                           columns_called(table, roles.targets)));
}

void warn_of_copied_target(const TableFile& table, const TableRoles& roles,
                           std::span<const double> features, std::span<const double> targets,
                           std::vector<std::string>& warnings) {
  const std::size_t width = roles.features.size();
  const std::size_t outputs = roles.targets.size();
  const std::size_t rows = targets.size() / outputs;
  if (rows < kFewestRows) {
    return;
  }
  std::vector<std::size_t> copies;
  for (std::size_t k = 0; k < width; ++k) {
    for (std::size_t j = 0; j < outputs; ++j) {
      std::size_t row = 0;
      while (row < rows && features[row * width + k] == targets[row * outputs + j]) {
        ++row;
      }
      if (row == rows) {
        copies.push_back(roles.features[k]);
      }
    }
  }
  Warner(table, warnings).warn_of(copies, "equal to what is to be predicted in all rows");
}

}  // namespace sotto
