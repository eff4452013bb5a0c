#include "labels.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <sotto/base/error.h>
#include <sotto/base/philox.h>
#include <sotto/base/text.h>

#include "file.h"

namespace sotto {
namespace {

constexpr std::size_t kMostClasses = 1000;

/// Each label's place among the classes, by the order in which they came.
template <typename Map>
std::vector<std::int32_t> places_in(const Map& labels) {
  std::vector<std::int32_t> places(labels.size());
  std::int32_t place = 0;
  for (const auto& [label, number] : labels) {
    places[number] = place++;
  }
  return places;
}

/// "'a', 'b' and 3 more"
std::string list_of(std::span<const std::string> names) {
  constexpr std::size_t kShown = 5;
  std::vector<std::string> shown;
  for (const std::string& name : names.first(std::min(kShown, names.size()))) {
    shown.push_back(fmt::format("'{}'", excerpt(name)));
  }
  return names.size() > kShown
             ? fmt::format("{} and {} more", fmt::join(shown, ", "), names.size() - kShown)
             : fmt::format("{}", fmt::join(shown, ", "));
}

/// Names that another one equals but for capital letters.
std::vector<std::string> names_alike(std::span<const std::string> names) {
  std::map<std::string, std::string> seen;
  std::vector<std::string> alike;
  for (const std::string& name : names) {
    const auto [found, fresh] = seen.emplace(small_letters(name), name);
    if (!fresh) {
      alike.insert(alike.end(), {found->second, name});
    }
  }
  return alike;
}

std::vector<std::size_t> count_classes(std::span<const std::int32_t> labels, std::size_t classes) {
  std::vector<std::size_t> counts(classes);
  for (const std::int32_t label : labels) {
    ++counts[static_cast<std::size_t>(label)];
  }
  return counts;
}

}  // namespace

void LabelCollector::add_number(double label, std::size_t line) {
  const auto [found, fresh] =
      by_number_.emplace(label, static_cast<std::uint32_t>(by_number_.size()));
  examples_.push_back(found->second);
  if (!first_fraction_ && label != std::floor(label)) {
    first_fraction_ = {label, line};
  }
}

void LabelCollector::add_word(std::string_view label) {
  auto found = by_word_.find(label);
  if (found == by_word_.end()) {
    found = by_word_.emplace(label, static_cast<std::uint32_t>(by_word_.size())).first;
  }
  examples_.push_back(found->second);
}

std::vector<std::string> LabelCollector::classes(const std::filesystem::path& path,
                                                 std::string_view regression) const {
  const std::size_t count = by_number_.size() + by_word_.size();
  const std::string advice =
      regression.empty() ? "" : fmt::format("; a regression predicts numbers: {}", regression);
  if (count > 2 && first_fraction_) {
    refuse_file(path, "",
                fmt::format("{} different labels in {} examples, and not all whole numbers (line "
                            "{} has {}): they look like numbers to be predicted, not classes{}",
                            count, examples_.size(), first_fraction_->second,
                            first_fraction_->first, advice));
  }
  if (count > kMostClasses) {
    refuse_file(path, "",
                fmt::format("{} different labels; at most {} classes are expected{}", count,
                            kMostClasses, by_word_.empty() ? advice : ""));
  }
  std::vector<std::string> names;
  names.reserve(count);
  for (const auto& [label, number] : by_number_) {
    names.push_back(fmt::to_string(label));
  }
  for (const auto& [label, number] : by_word_) {
    names.push_back(label);
  }
  return names;
}

std::vector<std::int32_t> LabelCollector::numbers() const {
  const auto places = by_word_.empty() ? places_in(by_number_) : places_in(by_word_);
  std::vector<std::int32_t> numbers;
  numbers.reserve(examples_.size());
  for (const std::uint32_t label : examples_) {
    numbers.push_back(places[label]);
  }
  return numbers;
}

Split split_rows(const std::filesystem::path& path, std::size_t rows) {
  if (rows < 2 || rows > std::numeric_limits<std::uint32_t>::max()) {
    refuse_file(path, "",
                fmt::format("{} row(s); 2 … 2^32 − 1 are expected, to train and to test", rows));
  }
  std::vector<std::uint32_t> order(rows);
  std::iota(order.begin(), order.end(), 0U);
  RandomStream stream({.seed = 0, .purpose = Purpose::partition});
  for (std::size_t i = rows; i > 1; --i) {
    std::swap(order[i - 1], order[stream.below(i)]);
  }
  const auto cut = static_cast<std::ptrdiff_t>(rows - std::max<std::size_t>(1, rows / 5));
  return {.train = {order.begin(), order.begin() + cut},
          .test = {order.begin() + cut, order.end()}};
}

void warn_of_rare_classes(const std::filesystem::path& path, std::span<const std::string> classes,
                          std::span<const std::int32_t> train, std::span<const std::int32_t> test,
                          std::string_view regression, std::vector<std::string>& warnings) {
  constexpr std::size_t kManyClasses = 20;
  const std::size_t examples = train.size() + test.size();
  if (!regression.empty() && classes.size() > kManyClasses && 4 * classes.size() > examples) {
    warnings.push_back(
        fmt::format("{}: {} different labels in {} examples: if they are amounts, not classes, "
                    "take {}",
                    path.string(), classes.size(), examples, regression));
  }
  const auto trained = count_classes(train, classes.size());
  const auto tested = count_classes(test, classes.size());
  std::vector<std::string> lone;
  std::vector<std::string> untrained;
  std::vector<std::string> untested;
  for (std::size_t k = 0; k < classes.size(); ++k) {
    if (trained[k] + tested[k] == 0) {
      continue;  // one of a known list of classes
    }
    if (trained[k] + tested[k] == 1) {
      lone.push_back(classes[k]);
    } else if (trained[k] == 0) {
      untrained.push_back(classes[k]);
    } else if (tested[k] == 0) {
      untested.push_back(classes[k]);
    }
  }
  const auto warn = [&](std::span<const std::string> which, std::string_view what) {
    if (!which.empty()) {
      warnings.push_back(fmt::format("{}: {} of {} classes {}: {}", path.string(), which.size(),
                                     classes.size(), what, list_of(which)));
    }
  };
  warn(names_alike(classes), "differ in capital letters alone");
  warn(lone, "have one example alone, to train or to test");
  warn(untrained, "are in the test set alone, and cannot be learned");
  warn(untested, "are in the training set alone, and are not tested");
}

std::vector<std::int32_t> labels_at(std::span<const std::int32_t> labels,
                                    std::span<const std::uint32_t> examples) {
  std::vector<std::int32_t> chosen;
  chosen.reserve(examples.size());
  for (const std::uint32_t example : examples) {
    chosen.push_back(labels[example]);
  }
  return chosen;
}

FeatureScaling scaling_of(std::span<const double> values) {
  const auto count = static_cast<double>(values.size());
  double sum = 0;
  for (const double value : values) {
    sum += value;
  }
  FeatureScaling scaling{.mean = sum / count};
  const auto [least, largest] = std::minmax_element(values.begin(), values.end());
  if (*least < *largest) {
    double squares = 0;
    for (const double value : values) {
      const double away = value - scaling.mean;
      squares += away * away;
    }
    scaling.factor = 1 / std::sqrt(squares / count);
  }
  return scaling;
}

float scaled(const std::filesystem::path& path, std::string_view column, double value,
             const FeatureScaling& scaling) {
  const auto result = static_cast<float>((value - scaling.mean) * scaling.factor);
  if (!std::isfinite(result)) {
    refuse_file(path, fmt::format("column '{}'", excerpt(column)),
                fmt::format("{} cannot be scaled by the column's mean and deviation", value));
  }
  return result;
}

ScaledTargets scale_targets(const std::filesystem::path& path, std::span<const std::string> names,
                            std::span<const double> values, const Split& split,
                            const SharedScaling* scaling) {
  const std::size_t outputs = names.size();
  ScaledTargets targets;
  for (std::size_t k = 0; k < outputs; ++k) {
    std::vector<double> column;
    column.reserve(split.train.size());
    for (const std::uint32_t row : split.train) {
      column.push_back(values[row * outputs + k]);
    }
    if (std::all_of(column.begin(), column.end(),
                    [&](double value) { return value == column.front(); })) {
      refuse_file(path, "",
                  fmt::format("'{}' is {} in all {} training rows: there is nothing to predict",
                              excerpt(names[k]), column.front(), column.size()));
    }
    targets.scaling.push_back(scaling == nullptr ? scaling_of(column)
                                                 : scaling->targets[k].scaling());
  }
  const auto answers = [&](const std::vector<std::uint32_t>& rows) {
    std::vector<float> chosen;
    chosen.reserve(rows.size() * outputs);
    for (const std::uint32_t row : rows) {
      for (std::size_t k = 0; k < outputs; ++k) {
        chosen.push_back(scaled(path, names[k], values[row * outputs + k], targets.scaling[k]));
      }
    }
    return Answers(outputs, std::move(chosen));
  };
  targets.train = answers(split.train);
  targets.test = answers(split.test);
  return targets;
}

}  // namespace sotto
