#include <sotto/trainers/data/table_sums.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <sotto/base/error.h>
#include <sotto/base/names.h>
#include <sotto/base/number.h>
#include <sotto/base/text.h>
#include <sotto/optim/privacy/private_moments.h>

#include "loaders/column_checks.h"
#include "loaders/table.h"
#include "loaders/table_request.h"
#include "loaders/table_roles.h"
#include "loaders/table_warnings.h"
#include "loaders/task_spec.h"

namespace sotto {
namespace {

/// The bounds in "NAME=LEAST:LARGEST"; none where the text does not end so.
std::optional<ValueBounds> bounds_in(std::string_view item) {
  const std::size_t equals = item.rfind('=');
  const std::size_t colon = item.rfind(':');
  if (equals == item.npos || colon == item.npos || colon < equals || equals == 0) {
    return std::nullopt;
  }
  const auto least = parse_number<double>(trimmed(item.substr(equals + 1, colon - equals - 1)));
  const auto largest = parse_number<double>(trimmed(item.substr(colon + 1)));
  if (!least || !largest) {
    return std::nullopt;
  }
  return ValueBounds{std::string(trimmed(item.substr(0, equals))), *least, *largest};
}

TableTask table_task(std::string_view task) {
  std::error_code ignored;
  const std::string_view name = task_name(task);
  if (name == "csv" && !std::filesystem::exists(task, ignored)) {
    return parse_table_task(task);
  }
  TableTask plain;
  plain.file = task;
  plain.request.task = fmt::format("csv:{}", task);
  if (task.find(':') != task.npos && !std::filesystem::exists(task, ignored)) {
    refuse("file", task, "scaling is of the columns of a table: give its file, or csv:FILE,…");
  }
  return plain;
}

/// Bounds of the columns that are used, in their order.
std::vector<ValueBounds> bounds_of(const TableFile& table, std::span<const std::size_t> used,
                                   std::span<const ValueBounds> given) {
  std::vector<ValueBounds> bounds;
  std::vector<std::string> lacking;
  std::vector<std::string> names;
  for (const std::size_t column : used) {
    const ColumnSurvey& survey = table.columns[column];
    names.push_back(printable(survey.name));
    const auto found = std::ranges::find_if(given, [&](const ValueBounds& one) {
      return one.column == survey.name || one.column == names.back();
    });
    if (found == given.end() && !survey.boolean()) {
      lacking.push_back(fmt::format("'{}'", excerpt(names.back())));
    }
    bounds.push_back(found != given.end() ? *found : ValueBounds{.column = survey.name});
    bounds.back().column = names.back();
  }
  for (const ValueBounds& one : given) {
    if (std::ranges::find(names, printable(one.column)) == names.end()) {
      refuse(
          "bounds", excerpt(one.column),
          fmt::format("the table uses no column of this name{}", did_you_mean(one.column, names)));
    }
  }
  if (!lacking.empty()) {
    constexpr std::size_t kShown = 10;
    const std::size_t more = lacking.size() - std::min(lacking.size(), kShown);
    lacking.resize(lacking.size() - more);
    throw Error("bounds", fmt::format("{}{} lack them: write NAME=LEAST:LARGEST for each, by what "
                                      "is known of the quantity and not by looking at the data",
                                      fmt::join(lacking, ", "),
                                      more == 0 ? "" : fmt::format(" and {} more", more)));
  }
  return bounds;
}

}  // namespace

std::vector<ValueBounds> parse_bounds(std::string_view list) {
  std::vector<ValueBounds> all;
  std::size_t from = 0;  // where the next comma is looked for: names may hold some
  for (std::size_t begin = 0; begin < list.size();) {
    const std::size_t end = std::min(list.find(',', from), list.size());
    const std::string_view item = list.substr(begin, end - begin);
    const auto bounds = bounds_in(item);
    from = end + 1;
    if (!bounds && end < list.size()) {
      continue;
    }
    if (!bounds) {
      refuse("bounds", excerpt(item), "expected NAME=LEAST:LARGEST, as in age=0:120");
    }
    if (!std::isfinite(bounds->largest - bounds->least) ||
        !std::isfinite(bounds->largest + bounds->least) || bounds->least >= bounds->largest) {
      refuse("bounds", excerpt(item), "the first number must be below the second, both finite");
    }
    if (std::ranges::find(all, bounds->column, &ValueBounds::column) != all.end()) {
      refuse("bounds", excerpt(item), "its column is named twice");
    }
    all.push_back(*bounds);
    begin = from;
  }
  return all;
}

SummedTable sum_table(std::string_view task, std::span<const ValueBounds> bounds,
                      const SumsPrivacy& privacy) {
  const TableTask wanted = table_task(task);
  const TableRequest& request = wanted.request;
  const TableFile table = read_table(wanted.file, request);
  const TableRoles roles = choose_roles(table, request);
  check_columns(table, roles, request);
  std::vector<std::size_t> used = roles.features;
  if (request.regression) {
    used.insert(used.end(), roles.targets.begin(), roles.targets.end());
  }
  const std::vector<ValueBounds> limits = bounds_of(table, used, bounds);

  SummedTable summed;
  summed.warnings = warnings_of(table, roles, request);
  summed.clipped.resize(used.size());
  PrivateMoments moments(used.size());
  std::vector<double> values(used.size());
  TableRows rows(table.file, table.layout);
  while (rows.next()) {
    if (request.skip_missing && lacks_value(rows.fields(), roles)) {
      continue;
    }
    for (std::size_t k = 0; k < used.size(); ++k) {
      const double value = value_of(rows.fields()[used[k]]).number;
      const auto& [name, least, largest] = limits[k];
      const double scaled = (value - (least + largest) / 2) / ((largest - least) / 2);
      summed.clipped[k] += value < least || value > largest ? 1U : 0U;
      values[k] = std::clamp(scaled, -1.0, 1.0);
    }
    moments.add(values);
    ++summed.rows;
  }
  const ReleasedMoments released = moments.release(
      privacy.noise_multiplier,
      privacy.test_seed ? SecretKey::for_tests(*privacy.test_seed, 0) : SecretKey::fresh());
  summed.noise = privacy.noise_multiplier * moments.sensitivity();
  summed.sums.privacy = privacy;
  summed.sums.rows = released.rows;
  for (std::size_t k = 0; k < used.size(); ++k) {
    summed.sums.columns.push_back({.name = limits[k].column,
                                   .target = k >= roles.features.size(),
                                   .least = limits[k].least,
                                   .largest = limits[k].largest,
                                   .sum = released.sums[k],
                                   .squares = released.squares[k]});
  }
  return summed;
}

}  // namespace sotto
