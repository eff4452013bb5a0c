#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/trainers/data/loaders.h>

#include "column_checks.h"
#include "file.h"
#include "labels.h"
#include "table.h"
#include "table_roles.h"
#include "table_warnings.h"

namespace sotto {
namespace {

/// The used part of a table, as numbers: rows in the file's order.
struct TableValues {
  std::vector<double> features;  ///< rows × features
  std::vector<double> targets;   ///< rows × targets, for a regression
  LabelCollector labels;         ///< labels, for classes
  std::size_t rows = 0;
};

void add_label(const ColumnSurvey& column, std::string_view field, std::size_t line,
               LabelCollector& labels) {
  if (column.numeric()) {
    labels.add_number(value_of(field).number, line);
  } else if (column.boolean()) {
    labels.add_word(value_of(field).number != 0 ? "true" : "false");
  } else {
    labels.add_word(field);
  }
}

/// Puts a table's values behind those of others with the same columns.
void take_values(const TableFile& table, const TableRoles& roles, const TableRequest& request,
                 TableValues& values) {
  TableRows rows(table.file, table.layout);
  while (rows.next()) {
    if (request.skip_missing && lacks_value(rows.fields(), roles)) {
      continue;
    }
    for (const std::size_t column : roles.features) {
      values.features.push_back(value_of(rows.fields()[column]).number);
    }
    for (const std::size_t column : roles.targets) {
      if (request.regression) {
        values.targets.push_back(value_of(rows.fields()[column]).number);
      } else {
        add_label(table.columns[column], rows.fields()[column], rows.line(), values.labels);
      }
    }
    ++values.rows;
  }
}

std::vector<std::string> names_at(const TableFile& table, std::span<const std::size_t> columns) {
  std::vector<std::string> names;
  for (const std::size_t column : columns) {
    names.push_back(table.columns[column].name);
  }
  return names;
}

/// The features of these rows, scaled.
std::vector<float> features_at(const std::filesystem::path& path,
                               std::span<const std::string> names, std::span<const double> values,
                               std::span<const FeatureScaling> scalings,
                               std::span<const std::uint32_t> rows) {
  const std::size_t width = scalings.size();
  std::vector<float> features;
  features.reserve(rows.size() * width);
  for (const std::uint32_t row : rows) {
    for (std::size_t k = 0; k < width; ++k) {
      features.push_back(scaled(path, names[k], values[row * width + k], scalings[k]));
    }
  }
  return features;
}

/// The scaling of each feature, over the training rows.
std::vector<FeatureScaling> scalings_of(std::span<const double> values, std::size_t width,
                                        std::span<const std::uint32_t> rows) {
  std::vector<FeatureScaling> scalings;
  std::vector<double> column(rows.size());
  for (std::size_t k = 0; k < width; ++k) {
    std::transform(rows.begin(), rows.end(), column.begin(),
                   [&](std::uint32_t row) { return values[row * width + k]; });
    scalings.push_back(scaling_of(column));
  }
  return scalings;
}

std::shared_ptr<const Dataset> make_dataset(const std::string& name, const TableFile& table,
                                            const TableRoles& roles, const TableRequest& request,
                                            const TableValues& values, const Split& split) {
  const std::filesystem::path& path = table.path();
  DataFacts facts;
  facts.names.columns = names_at(table, roles.features);
  facts.warnings = warnings_of(table, roles, request);
  warn_of_missing_codes(table, roles, values.features, facts.warnings);
  if (request.scaling != nullptr) {
    require_columns(
        *request.scaling, facts.names.columns,
        request.regression ? names_at(table, roles.targets) : std::vector<std::string>());
    for (const ScaledColumn& column : request.scaling->columns) {
      facts.scaling.push_back(column.scaling());
    }
  } else {
    facts.scaling = scalings_of(values.features, roles.features.size(), split.train);
  }
  ScaledTargets answers;
  int classes = 0;
  if (request.regression) {
    facts.names.targets = names_at(table, roles.targets);
    answers = scale_targets(path, facts.names.targets, values.targets, split, request.scaling);
    facts.target_scaling = answers.scaling;
    warn_of_copied_target(table, roles, values.features, values.targets, facts.warnings);
  } else {
    const std::string advice = request.task.empty() ? "" : request.with("regression");
    facts.names.classes = values.labels.classes(path, advice);
    classes = static_cast<int>(facts.names.classes.size());
    const auto labels = values.labels.numbers();
    answers.train = labels_at(labels, split.train);
    answers.test = labels_at(labels, split.test);
    const bool numbers = table.columns[roles.targets.front()].numeric();
    warn_of_rare_classes(path, facts.names.classes, answers.train.labels, answers.test.labels,
                         numbers ? advice : "", facts.warnings);
    warn_of_copied_label(table, roles, values.features, labels, facts.warnings);
  }
  auto train = features_at(path, facts.names.columns, values.features, facts.scaling, split.train);
  auto test = features_at(path, facts.names.columns, values.features, facts.scaling, split.test);
  const std::size_t width = roles.features.size();
  return std::make_shared<const Dataset>(
      name, classes,
      std::make_unique<DenseExamples>(width, std::move(train), std::move(answers.train)),
      std::make_unique<DenseExamples>(width, std::move(test), std::move(answers.test)),
      std::move(facts));
}

/// A table, and what its columns are for.
struct UsedTable {
  TableFile table;
  TableRoles roles;
};

UsedTable read_used(const std::filesystem::path& file, const TableRequest& request) {
  UsedTable used{.table = read_table(file, request), .roles = {}};
  used.roles = choose_roles(used.table, request);
  check_columns(used.table, used.roles, request);
  return used;
}

const ColumnSurvey& label_of(const UsedTable& used) {
  return used.table.columns[used.roles.targets.front()];
}

}  // namespace

std::shared_ptr<const Dataset> load_csv(const std::filesystem::path& file,
                                        const TableRequest& request) {
  const UsedTable used = read_used(file, request);
  TableValues values;
  take_values(used.table, used.roles, request, values);
  return make_dataset(file.string(), used.table, used.roles, request, values,
                      split_rows(file, values.rows));
}

std::shared_ptr<const Dataset> load_occupancy(const std::filesystem::path& directory) {
  require_folder(directory, "expected are datatraining.txt, datatest.txt and datatest2.txt");
  const TableRequest request{.drop = {"date"}};
  const UsedTable train = read_used(directory / "datatraining.txt", request);
  TableValues values;
  take_values(train.table, train.roles, request, values);
  const std::size_t trained = values.rows;
  for (const char* name : {"datatest.txt", "datatest2.txt"}) {
    const UsedTable test = read_used(directory / name, request);
    if (test.table.layout.names != train.table.layout.names ||
        label_of(test).numeric() != label_of(train).numeric()) {
      refuse_file(test.table.path(), "line 1", "the columns of datatraining.txt are expected");
    }
    take_values(test.table, test.roles, request, values);
  }
  std::vector<std::uint32_t> rows(values.rows);
  std::iota(rows.begin(), rows.end(), 0U);
  const auto cut = rows.begin() + static_cast<std::ptrdiff_t>(trained);
  return make_dataset(directory.string(), train.table, train.roles, request, values,
                      {.train = {rows.begin(), cut}, .test = {cut, rows.end()}});
}

}  // namespace sotto
