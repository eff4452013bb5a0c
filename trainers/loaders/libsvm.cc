#include <algorithm>
#include <charconv>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <sotto/base/text.h>
#include <sotto/trainers/loaders.h>

#include "file.h"
#include "labels.h"
#include "text_lines.h"

namespace sotto {
namespace {

constexpr std::size_t kMaxFeatures = 1 << 20;

struct SparseRows {
  std::vector<double> labels;
  std::vector<std::size_t> begin = {0};
  std::vector<std::uint32_t> columns;
  std::vector<float> values;
};

/// Cuts the next word off `rest`; empty at the end.
std::string_view take_word(std::string_view& rest) {
  rest = trimmed(rest);
  const std::string_view word = rest.substr(0, rest.find_first_of(" \t"));
  rest.remove_prefix(word.size());
  return word;
}

/// Reads "INDEX:VALUE"; the index must be above `last`.
void read_entry(const TextLines& lines, std::string_view word, std::size_t& last,
                SparseRows& rows) {
  const std::size_t colon = word.find(':');
  std::size_t index = 0;
  const char* const end = word.data() + std::min(colon, word.size());
  const auto [stop, error] = std::from_chars(word.data(), end, index);
  if (colon == std::string_view::npos || error != std::errc{} || stop != end) {
    lines.refuse(fmt::format("INDEX:VALUE is expected; found '{}'", word.substr(0, 40)));
  }
  if (index == 0 || index > kMaxFeatures) {
    lines.refuse(fmt::format("index {}: indices count from 1 to {}", index, kMaxFeatures));
  }
  if (index <= last) {
    lines.refuse(fmt::format("index {} behind {}: indices must ascend", index, last));
  }
  last = index;
  rows.columns.push_back(static_cast<std::uint32_t>(index - 1));
  rows.values.push_back(
      static_cast<float>(lines.number(word.substr(colon + 1), fmt::format("index {}", index))));
}

SparseRows read_rows(const std::filesystem::path& file) {
  TextLines lines(file);
  SparseRows rows;
  while (lines.next()) {
    std::string_view rest = lines.line().substr(0, lines.line().find('#'));
    const std::string_view label = take_word(rest);
    if (label.empty()) {
      continue;  // a comment alone
    }
    rows.labels.push_back(lines.number(label, "label"));
    std::size_t last = 0;
    for (auto word = take_word(rest); !word.empty(); word = take_word(rest)) {
      read_entry(lines, word, last, rows);
    }
    rows.begin.push_back(rows.values.size());
  }
  return rows;
}

std::unique_ptr<const Examples> select(const SparseRows& rows,
                                       std::span<const std::int32_t> classes,
                                       std::span<const std::uint32_t> chosen,
                                       std::size_t features) {
  std::vector<std::size_t> begin = {0};
  std::vector<std::uint32_t> columns;
  std::vector<float> values;
  std::vector<std::int32_t> labels;
  for (const std::uint32_t row : chosen) {
    for (std::size_t at = rows.begin[row]; at < rows.begin[row + 1]; ++at) {
      columns.push_back(rows.columns[at]);
      values.push_back(rows.values[at]);
    }
    begin.push_back(values.size());
    labels.push_back(classes[row]);
  }
  return std::make_unique<SparseExamples>(features, std::move(begin), std::move(columns),
                                          std::move(values), std::move(labels));
}

}  // namespace

std::shared_ptr<const Dataset> load_libsvm(const std::filesystem::path& file,
                                           std::size_t features) {
  const SparseRows rows = read_rows(file);
  if (rows.columns.empty()) {
    refuse_file(file, "", "there is no example with a feature");
  }
  const std::size_t used = *std::max_element(rows.columns.begin(), rows.columns.end()) + 1;
  if (features != 0 && (features < used || features > kMaxFeatures)) {
    refuse_file(file, "",
                fmt::format("features={} is given; the file uses {}, and {} is the limit", features,
                            used, kMaxFeatures));
  }
  const std::size_t width = features != 0 ? features : used;
  const auto distinct = distinct_labels(file, rows.labels);
  const auto classes = class_numbers(rows.labels, distinct);
  const Split split = split_rows(file, rows.labels.size());
  return std::make_shared<const Dataset>(file.string(), static_cast<int>(distinct.size()),
                                         select(rows, classes, split.train, width),
                                         select(rows, classes, split.test, width), std::nullopt,
                                         std::nullopt, DataNames{.classes = class_names(distinct)});
}

}  // namespace sotto
