// Steps that the loaders of tables share: answers from labels, the split, and what to warn of.
//
// Private to the loaders. Pure functions; thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <sotto/trainers/data/dataset.h>
#include <sotto/trainers/data/shared_scaling.h>

namespace sotto {

/// Gathers the labels of a file, one example after another, and tells classes from a regression.
class LabelCollector {
 public:
  /// Each label must be given by `add_number`, or each by `add_word`.
  void add_number(double label, std::size_t line);
  void add_word(std::string_view label);

  /// The classes' names: numbers ascending, else words in the order of their bytes. Throws Error,
  /// naming the file, for more than 1000 classes, and for more than two labels that are no whole
  /// numbers; `regression` is the specification that takes them ("csv:data.csv,regression").
  std::vector<std::string> classes(const std::filesystem::path& path,
                                   std::string_view regression) const;
  /// Each example's class, its place in `classes`.
  std::vector<std::int32_t> numbers() const;

 private:
  std::map<double, std::uint32_t> by_number_;  // labels in the order of their first examples
  std::map<std::string, std::uint32_t, std::less<>> by_word_;
  std::vector<std::uint32_t> examples_;
  // The first label that is no whole number, and its line.
  std::optional<std::pair<double, std::size_t>> first_fraction_;
};

/// Examples by their places in a file.
struct Split {
  std::vector<std::uint32_t> train;
  std::vector<std::uint32_t> test;
};

/// A fixed shuffle of 0 … rows − 1, of which a fifth (at least one) tests. Throws Error, naming the
/// file, for fewer than two rows or more than 2^32 − 1.
Split split_rows(const std::filesystem::path& path, std::size_t rows);

/// Warns of classes that differ in capital letters alone, of those with one example in all, of
/// those that the training or the test set never shows, and of a number of classes that suggests
/// amounts; `regression` is as in LabelCollector, and empty where classes have names.
void warn_of_rare_classes(const std::filesystem::path& path, std::span<const std::string> classes,
                          std::span<const std::int32_t> train, std::span<const std::int32_t> test,
                          std::string_view regression, std::vector<std::string>& warnings);
/// The labels of these examples.
std::vector<std::int32_t> labels_at(std::span<const std::int32_t> labels,
                                    std::span<const std::uint32_t> examples);

/// Shift and factor that give these values mean 0 and deviation 1; constant ones are only shifted.
FeatureScaling scaling_of(std::span<const double> values);

/// (value − mean) × factor as a float. Throws Error, naming the file and the column, for what no
/// float holds.
float scaled(const std::filesystem::path& path, std::string_view column, double value,
             const FeatureScaling& scaling);

/// The targets of a regression, rows × outputs, as answers to be learned.
struct ScaledTargets {
  std::vector<FeatureScaling> scaling;
  Answers train;
  Answers test;
};

/// Scales targets to mean 0 and deviation 1 over the training rows, or as `scaling`, which has
/// these targets, says. Throws Error, naming the file, for a target that is the same in all of
/// these rows.
ScaledTargets scale_targets(const std::filesystem::path& path, std::span<const std::string> names,
                            std::span<const double> values, const Split& split,
                            const SharedScaling* scaling = nullptr);

}  // namespace sotto
