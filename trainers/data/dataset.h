// Examples with their classes or target numbers: the immutable data behind a task.
//
// Thread safety: everything here is immutable after construction, so one data set serves any number
// of nodes in a process. Ownership: examples own their values; a data set owns its examples; nodes
// share it by std::shared_ptr<const Dataset>.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace sotto {

/// How a row of features is to be read as an image: channel by channel, row-major.
struct ImageShape {
  std::size_t channels = 1;
  std::size_t height = 0;
  std::size_t width = 0;

  std::size_t size() const { return channels * height * width; }
};

/// How a row of features is to be read as a text: one symbol behind the other, each one-hot.
struct SequenceShape {
  std::size_t positions = 0;
  std::size_t symbols = 0;

  std::size_t size() const { return positions * symbols; }
};

/// The labels of examples: a class for each, or for a regression a row of numbers.
struct Answers {
  Answers() = default;
  /// A class for each example.
  Answers(std::vector<std::int32_t> classes) : labels(std::move(classes)) {}  // NOLINT: implicit
  /// Targets of a regression: `outputs_an_example` numbers for each example, row-major.
  Answers(std::size_t outputs_an_example, std::vector<float> numbers)
      : targets(std::move(numbers)), outputs(outputs_an_example) {}

  std::vector<std::int32_t> labels;
  std::vector<float> targets;
  std::size_t outputs = 0;  ///< targets of an example; 0 where classes are to be predicted

  /// The number of examples.
  std::size_t size() const { return outputs > 0 ? targets.size() / outputs : labels.size(); }
};

/// Rows of `features` floats, each with its answer. How rows are kept is the derived class's
/// business; they are handed out dense.
class Examples {
 public:
  virtual ~Examples() = default;

  std::size_t size() const { return answers_.size(); }
  std::size_t features() const { return features_; }
  /// The class of each example; empty for a regression.
  std::span<const std::int32_t> labels() const { return answers_.labels; }
  /// The number of targets of an example; 0 for a classification.
  std::size_t outputs() const { return answers_.outputs; }
  /// The numbers to be predicted, size() × outputs(), row-major.
  std::span<const float> targets() const { return answers_.targets; }

  /// Writes the features of example `row`. Requires row < size() and out.size() == features().
  virtual void copy_row(std::size_t row, std::span<float> out) const = 0;
  /// Writes what follows each of the last out.size() positions of example `row`; at the last one
  /// that is its label. Requires row < size() and 1 ≤ out.size() ≤ positions, which is 1 for all
  /// but texts.
  virtual void copy_labels(std::size_t row, std::span<std::int32_t> out) const;

 protected:
  /// `features` numbers an example, and an answer each.
  Examples(std::size_t features, Answers answers)
      : features_(features), answers_(std::move(answers)) {}

 private:
  std::size_t features_;
  Answers answers_;
};

/// Rows kept as one row-major matrix of floats.
class DenseExamples final : public Examples {
 public:
  /// Requires values.size() == answers.size() × features.
  DenseExamples(std::size_t features, std::vector<float> values, Answers answers);
  void copy_row(std::size_t row, std::span<float> out) const override;

 private:
  std::vector<float> values_;
};

/// Rows kept as their values other than 0 (compressed sparse rows).
class SparseExamples final : public Examples {
 public:
  /// Example i has values[begin[i] … begin[i + 1]) at the columns of the same places. Requires
  /// answers.size() + 1 ascending entries in `begin`, the last being values.size(), one column for
  /// each value, and columns below `features`.
  SparseExamples(std::size_t features, std::vector<std::size_t> begin,
                 std::vector<std::uint32_t> columns, std::vector<float> values, Answers answers);
  void copy_row(std::size_t row, std::span<float> out) const override;

 private:
  std::vector<std::size_t> begin_;
  std::vector<std::uint32_t> columns_;
  std::vector<float> values_;
};

/// Names of features, classes and targets, in order, if the file gives them. Data for one model
/// must have equal names.
struct DataNames {
  std::vector<std::string> columns{};
  std::vector<std::string> classes{};
  std::vector<std::string> targets{};  ///< names of a regression's targets
};

/// How the values of a column became a feature or a target: (value − mean) × factor.
struct FeatureScaling {
  double mean = 0;
  double factor = 1;
};

/// Facts of a data set besides its examples.
struct DataFacts {
  std::optional<ImageShape> image{};
  std::optional<SequenceShape> sequence{};
  DataNames names{};
  std::vector<FeatureScaling> scaling{};  ///< scaling of each feature; empty where none was scaled
  /// Scaling of each target; empty where none was scaled.
  std::vector<FeatureScaling> target_scaling{};
  /// Warnings for the user, in sentences that name the file.
  std::vector<std::string> warnings{};
};

/// A training and a test set that belong together.
class Dataset {
 public:
  /// `name` is used in messages; `classes` is 0 for a regression. Throws Error when a set is empty
  /// or has 2^32 examples or more, when the two differ in their features or outputs, when `image`
  /// or `sequence` does not fit these, when there is one class alone, or when a label lies outside
  /// 0 … classes − 1.
  Dataset(std::string name, int classes, std::unique_ptr<const Examples> train,
          std::unique_ptr<const Examples> test, DataFacts facts = {});

  const std::string& name() const { return name_; }
  std::size_t features() const { return train_->features(); }
  /// 0 for a regression.
  int classes() const { return classes_; }
  /// Whether numbers are to be predicted, not classes.
  bool regression() const { return train_->outputs() > 0; }
  /// The number of a model's outputs for an example: a score for each class, or the targets.
  std::size_t outputs() const;
  const std::optional<ImageShape>& image() const { return facts_.image; }
  const std::optional<SequenceShape>& sequence() const { return facts_.sequence; }
  const DataNames& names() const { return facts_.names; }
  /// How each feature was scaled; empty where none was.
  const std::vector<FeatureScaling>& scaling() const { return facts_.scaling; }
  /// How each target was scaled; empty where none was.
  const std::vector<FeatureScaling>& target_scaling() const { return facts_.target_scaling; }
  /// Warnings for the user.
  const std::vector<std::string>& warnings() const { return facts_.warnings; }
  const Examples& train() const { return *train_; }
  const Examples& test() const { return *test_; }

 private:
  std::string name_;
  int classes_;
  std::unique_ptr<const Examples> train_;
  std::unique_ptr<const Examples> test_;
  DataFacts facts_;
};

}  // namespace sotto
