#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/base/number.h>
#include <sotto/base/text.h>
#include <sotto/trainers/data/loaders.h>

#include "file.h"
#include "labels.h"
#include "text_lines.h"

namespace sotto {
namespace {

constexpr std::size_t kMostFeatures = 1 << 20;

struct SparseEntry {
  std::uint32_t column = 0;
  float value = 0;
};

struct SparseRows {
  std::vector<double> targets;
  LabelCollector labels;
  std::vector<std::size_t> begin = {0};
  std::vector<SparseEntry> entries;
  bool grouped = false;  ///< some rows have a qid

  std::size_t size() const { return targets.size(); }
};

/// Cuts the next word off `rest`; empty at the end.
std::string_view take_word(std::string_view& rest) {
  rest = trimmed(rest);
  const std::string_view word = rest.substr(0, rest.find_first_of(" \t"));
  rest.remove_prefix(word.size());
  return word;
}

/// Reads "INDEX:VALUE".
void read_entry(const TextLines& lines, std::string_view word, const SparseRequest& request,
                SparseRows& rows) {
  const std::size_t colon = word.find(':');
  const auto index = parse_number<std::size_t>(word.substr(0, colon));
  const bool too_long = !index && colon != std::string_view::npos && colon > 0 &&
                        word.substr(0, colon).find_first_not_of("0123456789") == word.npos;
  if (colon == std::string_view::npos || (!index && !too_long)) {
    lines.refuse(fmt::format("INDEX:VALUE is expected; found '{}'", excerpt(word)));
  }
  const std::size_t first = request.zero_based ? 0 : 1;
  if (index == std::size_t{0} && first == 1) {
    lines.refuse(fmt::format(
        "index 0: indices count from 1{}",
        request.task.empty()
            ? ""
            : fmt::format("; a file whose indices count from 0 is {},zero-based", request.task)));
  }
  if (too_long || *index - first >= kMostFeatures) {
    lines.refuse(fmt::format("index {}: indices count from {} to {}",
                             excerpt(word.substr(0, colon)), first, kMostFeatures - 1 + first));
  }
  rows.entries.push_back({.column = static_cast<std::uint32_t>(*index - first),
                          .value = static_cast<float>(lines.number(
                              word.substr(colon + 1), fmt::format("index {}", *index)))});
}

/// Sorts the entries of the last row by their indices, each of which stands there once.
void end_row(const TextLines& lines, const SparseRequest& request, SparseRows& rows) {
  const std::span entries = std::span(rows.entries).subspan(rows.begin.back());
  std::ranges::sort(entries, {}, &SparseEntry::column);
  const auto twin = std::ranges::adjacent_find(entries, {}, &SparseEntry::column);
  if (twin != entries.end()) {
    lines.refuse(fmt::format("index {} stands twice in this row",
                             twin->column + (request.zero_based ? 0 : 1)));
  }
  rows.begin.push_back(rows.entries.size());
}

double read_label(const TextLines& lines, std::string_view label) {
  if (label.find(',') != std::string_view::npos) {
    lines.refuse(
        fmt::format("label: '{}': an example has one label, without commas; a table is "
                    "read as csv:FILE",
                    excerpt(label)));
  }
  return lines.number(label, "label");
}

SparseRows read_rows(const TextFile& file, const SparseRequest& request) {
  constexpr std::string_view kGroup = "qid:";
  TextLines lines(file);
  SparseRows rows;
  while (lines.next()) {
    std::string_view rest = lines.line().substr(0, lines.line().find('#'));
    const std::string_view label = take_word(rest);
    if (label.empty()) {
      continue;  // a comment alone
    }
    rows.targets.push_back(read_label(lines, label));
    if (!request.regression) {
      rows.labels.add_number(rows.targets.back(), lines.number());
    }
    std::string_view word = take_word(rest);
    if (word.starts_with(kGroup)) {
      if (!parse_number<std::uint64_t>(word.substr(kGroup.size()))) {
        lines.refuse(fmt::format("qid: a whole number is expected; found '{}'", excerpt(word)));
      }
      rows.grouped = true;
      word = take_word(rest);
    }
    for (; !word.empty(); word = take_word(rest)) {
      read_entry(lines, word, request, rows);
    }
    end_row(lines, request, rows);
  }
  return rows;
}

std::unique_ptr<const Examples> select(const SparseRows& rows, Answers answers,
                                       std::span<const std::uint32_t> chosen,
                                       std::size_t features) {
  std::vector<std::size_t> begin = {0};
  std::vector<std::uint32_t> columns;
  std::vector<float> values;
  for (const std::uint32_t row : chosen) {
    for (std::size_t at = rows.begin[row]; at < rows.begin[row + 1]; ++at) {
      columns.push_back(rows.entries[at].column);
      values.push_back(rows.entries[at].value);
    }
    begin.push_back(values.size());
  }
  return std::make_unique<SparseExamples>(features, std::move(begin), std::move(columns),
                                          std::move(values), std::move(answers));
}

/// How many features there are.
std::size_t width_of(const std::filesystem::path& file, const SparseRows& rows,
                     const SparseRequest& request) {
  if (rows.entries.empty()) {
    refuse_file(file, "", "there is no example with a feature");
  }
  const std::size_t used =
      std::ranges::max_element(rows.entries, {}, &SparseEntry::column)->column + std::size_t{1};
  if (request.features != 0 && (request.features < used || request.features > kMostFeatures)) {
    refuse_file(file, "",
                fmt::format("features={} is given; the file uses {}, and {} is the limit",
                            request.features, used, kMostFeatures));
  }
  return request.features != 0 ? request.features : used;
}

}  // namespace

std::shared_ptr<const Dataset> load_libsvm(const std::filesystem::path& file,
                                           const SparseRequest& request) {
  const SparseRows rows = read_rows(read_text_file(file), request);
  const std::size_t width = width_of(file, rows, request);
  DataFacts facts;
  if (rows.grouped) {
    facts.warnings.push_back(
        fmt::format("{}: groups (qid) are for rankings, and passed over here", file.string()));
  }
  const Split split = split_rows(file, rows.size());
  ScaledTargets answers;
  int classes = 0;
  if (request.regression) {
    facts.names.targets = {"label"};
    answers = scale_targets(file, facts.names.targets, rows.targets, split);
    facts.target_scaling = answers.scaling;
  } else {
    const std::string advice = request.task.empty() ? "" : request.task + ",regression";
    facts.names.classes = rows.labels.classes(file, advice);
    classes = static_cast<int>(facts.names.classes.size());
    const auto labels = rows.labels.numbers();
    answers.train = labels_at(labels, split.train);
    answers.test = labels_at(labels, split.test);
    warn_of_rare_classes(file, facts.names.classes, answers.train.labels, answers.test.labels,
                         advice, facts.warnings);
  }
  return std::make_shared<const Dataset>(
      file.string(), classes, select(rows, std::move(answers.train), split.train, width),
      select(rows, std::move(answers.test), split.test, width), std::move(facts));
}

}  // namespace sotto
