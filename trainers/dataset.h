// Labelled examples for classification: the immutable data behind a task.
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

/// Rows of `features` floats, each with a label. How rows are kept is the derived class's business;
/// they are handed out dense.
class Examples {
 public:
  virtual ~Examples() = default;

  std::size_t size() const { return labels_.size(); }
  std::size_t features() const { return features_; }
  std::span<const std::int32_t> labels() const { return labels_; }

  /// Writes the features of example `row`. Requires row < size() and out.size() == features().
  virtual void copy_row(std::size_t row, std::span<float> out) const = 0;
  /// Writes what follows each of the last out.size() positions of example `row`; at the last one
  /// that is its label. Requires row < size() and 1 ≤ out.size() ≤ positions, which is 1 for all
  /// but texts.
  virtual void copy_labels(std::size_t row, std::span<std::int32_t> out) const;

 protected:
  /// `features` numbers an example, and a label each.
  Examples(std::size_t features, std::vector<std::int32_t> labels)
      : features_(features), labels_(std::move(labels)) {}

 private:
  std::size_t features_;
  std::vector<std::int32_t> labels_;
};

/// Rows kept as one row-major matrix of floats.
class DenseExamples final : public Examples {
 public:
  /// Requires values.size() == labels.size() × features.
  DenseExamples(std::size_t features, std::vector<float> values, std::vector<std::int32_t> labels);
  void copy_row(std::size_t row, std::span<float> out) const override;

 private:
  std::vector<float> values_;
};

/// Rows kept as their values other than 0 (compressed sparse rows).
class SparseExamples final : public Examples {
 public:
  /// Example i has values[begin[i] … begin[i + 1]) at the columns of the same places. Requires
  /// labels.size() + 1 ascending entries in `begin`, the last being values.size(), as many columns
  /// as values, and columns below `features`.
  SparseExamples(std::size_t features, std::vector<std::size_t> begin,
                 std::vector<std::uint32_t> columns, std::vector<float> values,
                 std::vector<std::int32_t> labels);
  void copy_row(std::size_t row, std::span<float> out) const override;

 private:
  std::vector<std::size_t> begin_;
  std::vector<std::uint32_t> columns_;
  std::vector<float> values_;
};

/// What the features and the classes stand for, in their order, where files say so: data of one
/// model must agree in it.
struct DataNames {
  std::vector<std::string> columns{};
  std::vector<std::string> classes{};
};

/// How the values of a column became a feature: (value − mean) × factor.
struct FeatureScaling {
  double mean = 0;
  double factor = 1;
};

/// A training and a test set that belong together.
class Dataset {
 public:
  /// `name` is used in messages. Throws Error when a set is empty or has 2^32 examples or more,
  /// when the two differ in their features, when `image` or `sequence` does not fit these, when
  /// there are fewer than two classes, or when a label lies outside 0 … classes − 1.
  Dataset(std::string name, int classes, std::unique_ptr<const Examples> train,
          std::unique_ptr<const Examples> test, std::optional<ImageShape> image = std::nullopt,
          std::optional<SequenceShape> sequence = std::nullopt, DataNames names = {},
          std::vector<FeatureScaling> scaling = {});

  const std::string& name() const { return name_; }
  std::size_t features() const { return train_->features(); }
  int classes() const { return classes_; }
  const std::optional<ImageShape>& image() const { return image_; }
  const std::optional<SequenceShape>& sequence() const { return sequence_; }
  const DataNames& names() const { return names_; }
  /// Of each feature; empty where none was scaled.
  const std::vector<FeatureScaling>& scaling() const { return scaling_; }
  const Examples& train() const { return *train_; }
  const Examples& test() const { return *test_; }

 private:
  std::string name_;
  int classes_;
  std::unique_ptr<const Examples> train_;
  std::unique_ptr<const Examples> test_;
  std::optional<ImageShape> image_;
  std::optional<SequenceShape> sequence_;
  DataNames names_;
  std::vector<FeatureScaling> scaling_;
};

}  // namespace sotto
