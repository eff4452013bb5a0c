#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/trainers/loaders.h>

#include "file.h"
#include "labels.h"
#include "table.h"

namespace sotto {
namespace {

/// The rows of one table that belong to one set.
struct CsvPart {
  const Table* table = nullptr;
  std::vector<std::uint32_t> rows;
};

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](char c) {
    return static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  });
  return text;
}

std::size_t label_column(const Table& table) {
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    if (const std::string name = lower(table.columns[i]); name == "label" || name == "class") {
      return i;
    }
  }
  return table.columns.size() - 1;
}

/// Shift and factor that give a column mean 0 and deviation 1; a constant one is only shifted.
FeatureScaling scaling_of(const CsvPart& part, std::size_t column) {
  const auto count = static_cast<double>(part.rows.size());
  double sum = 0;
  double least = part.table->at(part.rows.front(), column);
  double largest = least;
  for (const std::uint32_t row : part.rows) {
    const double value = part.table->at(row, column);
    sum += value;
    least = std::min(least, value);
    largest = std::max(largest, value);
  }
  FeatureScaling scaling{.mean = sum / count};
  if (least < largest) {
    double squares = 0;
    for (const std::uint32_t row : part.rows) {
      const double away = part.table->at(row, column) - scaling.mean;
      squares += away * away;
    }
    scaling.factor = 1 / std::sqrt(squares / count);
  }
  return scaling;
}

std::vector<double> labels_of(std::span<const CsvPart> parts, std::size_t column) {
  std::vector<double> labels;
  for (const CsvPart& part : parts) {
    for (const std::uint32_t row : part.rows) {
      labels.push_back(part.table->at(row, column));
    }
  }
  return labels;
}

float scaled(const Table& table, std::size_t row, std::size_t column,
             const FeatureScaling& scaling) {
  const auto value = static_cast<float>((table.at(row, column) - scaling.mean) * scaling.factor);
  if (!std::isfinite(value)) {
    refuse_file(table.path, fmt::format("column '{}'", excerpt(table.columns[column])),
                fmt::format("{} cannot be scaled by the training rows' mean and deviation",
                            table.at(row, column)));
  }
  return value;
}

/// The columns but the label, scaled, of all parts one after another.
std::vector<float> features_of(std::span<const CsvPart> parts,
                               std::span<const FeatureScaling> scalings, std::size_t label) {
  std::vector<float> values;
  for (const CsvPart& part : parts) {
    for (const std::uint32_t row : part.rows) {
      for (std::size_t column = 0; column < scalings.size(); ++column) {
        if (column != label) {
          values.push_back(scaled(*part.table, row, column, scalings[column]));
        }
      }
    }
  }
  return values;
}

/// All but that of the label.
std::vector<FeatureScaling> without(std::vector<FeatureScaling> scalings, std::size_t label) {
  scalings.erase(scalings.begin() + static_cast<std::ptrdiff_t>(label));
  return scalings;
}

DataNames names_of(const Table& table, std::size_t label, std::span<const double> classes) {
  std::vector<std::string> features = table.columns;
  features.erase(features.begin() + static_cast<std::ptrdiff_t>(label));
  return {.columns = std::move(features), .classes = class_names(classes)};
}

std::shared_ptr<const Dataset> make_dataset(const std::string& name, const CsvPart& train,
                                            std::span<const CsvPart> test) {
  const Table& table = *train.table;
  if (table.columns.size() < 2) {
    refuse_file(table.path, "line 1", "at least one feature and a label are expected");
  }
  const std::size_t label = label_column(table);
  std::vector<FeatureScaling> scalings(table.columns.size());
  for (std::size_t column = 0; column < scalings.size(); ++column) {
    scalings[column] = scaling_of(train, column);
  }
  const auto train_labels = labels_of({&train, 1}, label);
  const auto test_labels = labels_of(test, label);
  auto all_labels = train_labels;
  all_labels.insert(all_labels.end(), test_labels.begin(), test_labels.end());
  const auto distinct = distinct_labels(table.path, all_labels);
  const std::size_t features = scalings.size() - 1;
  return std::make_shared<const Dataset>(
      name, static_cast<int>(distinct.size()),
      std::make_unique<DenseExamples>(features, features_of({&train, 1}, scalings, label),
                                      class_numbers(train_labels, distinct)),
      std::make_unique<DenseExamples>(features, features_of(test, scalings, label),
                                      class_numbers(test_labels, distinct)),
      std::nullopt, std::nullopt, names_of(table, label, distinct), without(scalings, label));
}

CsvPart whole(const Table& table) {
  CsvPart part{.table = &table, .rows = std::vector<std::uint32_t>(table.rows())};
  std::iota(part.rows.begin(), part.rows.end(), 0U);
  return part;
}

}  // namespace

std::shared_ptr<const Dataset> load_csv(const std::filesystem::path& file) {
  const Table table = read_table(file);
  Split split = split_rows(file, table.rows());
  const CsvPart test{.table = &table, .rows = std::move(split.test)};
  return make_dataset(file.string(), {.table = &table, .rows = std::move(split.train)}, {&test, 1});
}

std::shared_ptr<const Dataset> load_occupancy(const std::filesystem::path& directory) {
  require_folder(directory, "expected are datatraining.txt, datatest.txt and datatest2.txt");
  const TableOptions options{.row_numbers = true, .dropped = "date"};
  const Table train = read_table(directory / "datatraining.txt", options);
  const std::array<Table, 2> tables = {read_table(directory / "datatest.txt", options),
                                       read_table(directory / "datatest2.txt", options)};
  for (const Table& table : tables) {
    if (table.columns != train.columns) {
      refuse_file(table.path, "line 1", "the columns of datatraining.txt are expected");
    }
  }
  const std::array<CsvPart, 2> test = {whole(tables[0]), whole(tables[1])};
  return make_dataset(directory.string(), whole(train), test);
}

}  // namespace sotto
