#include <sotto/trainers/data/dataset.h>

#include <algorithm>
#include <limits>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include <sotto/base/check.h>
#include <sotto/base/error.h>

namespace sotto {
namespace {

void require_valid(const std::string& name, std::string_view part, const Examples* examples,
                   int classes) {
  check(examples != nullptr, "a data set needs both a training and a test set");
  if (examples->size() == 0 || examples->features() == 0) {
    throw Error(fmt::format("{}: the {} set is empty", name, part));
  }
  if (examples->size() > std::numeric_limits<std::uint32_t>::max()) {
    throw Error(fmt::format("{}: the {} set has {} examples; 2^32 − 1 is the limit", name, part,
                            examples->size()));
  }
  if (classes == 1) {
    throw Error(fmt::format("{}: 1 class; a classification task needs two", name));
  }
  check(classes == 0 ? examples->outputs() > 0 : examples->outputs() == 0,
        "classes to be predicted, or numbers");
  const auto labels = examples->labels();
  const auto bad = std::find_if(labels.begin(), labels.end(), [classes](std::int32_t label) {
    return label < 0 || label >= classes;
  });
  if (bad != labels.end()) {
    throw Error(fmt::format("{}: the {} set's example {} has the label {}, outside 0 … {}", name,
                            part, bad - labels.begin(), *bad, classes - 1));
  }
}

}  // namespace

void Examples::copy_labels(std::size_t row, std::span<std::int32_t> out) const {
  check(row < size() && out.size() == 1, "Examples::copy_labels within bounds");
  out[0] = answers_.labels[row];
}

DenseExamples::DenseExamples(std::size_t features, std::vector<float> values, Answers answers)
    : Examples(features, std::move(answers)), values_(std::move(values)) {
  check(values_.size() == size() * features, "a row of features for every answer");
}

void DenseExamples::copy_row(std::size_t row, std::span<float> out) const {
  check(row < size() && out.size() == features(), "DenseExamples::copy_row within bounds");
  std::copy_n(values_.data() + row * features(), features(), out.data());
}

SparseExamples::SparseExamples(std::size_t features, std::vector<std::size_t> begin,
                               std::vector<std::uint32_t> columns, std::vector<float> values,
                               Answers answers)
    : Examples(features, std::move(answers)),
      begin_(std::move(begin)),
      columns_(std::move(columns)),
      values_(std::move(values)) {
  check(begin_.size() == size() + 1 && begin_.front() == 0 && begin_.back() == values_.size() &&
            std::is_sorted(begin_.begin(), begin_.end()) && columns_.size() == values_.size(),
        "compressed sparse rows that fit each other");
  check(std::all_of(columns_.begin(), columns_.end(),
                    [features](std::uint32_t column) { return column < features; }),
        "columns below the number of features");
}

void SparseExamples::copy_row(std::size_t row, std::span<float> out) const {
  check(row < size() && out.size() == features(), "SparseExamples::copy_row within bounds");
  std::fill(out.begin(), out.end(), 0.0F);
  for (std::size_t at = begin_[row]; at < begin_[row + 1]; ++at) {
    out[columns_[at]] = values_[at];
  }
}

Dataset::Dataset(std::string name, int classes, std::unique_ptr<const Examples> train,
                 std::unique_ptr<const Examples> test, DataFacts facts)
    : name_(std::move(name)),
      classes_(classes),
      train_(std::move(train)),
      test_(std::move(test)),
      facts_(std::move(facts)) {
  require_valid(name_, "training", train_.get(), classes_);
  require_valid(name_, "test", test_.get(), classes_);
  if (train_->features() != test_->features()) {
    throw Error(fmt::format("{}: {} features to train, but {} to test", name_, train_->features(),
                            test_->features()));
  }
  check(train_->outputs() == test_->outputs(), "as many outputs to train as to test");
  check(scaling().empty() || scaling().size() == features(), "a feature's scaling");
  check(target_scaling().empty() || target_scaling().size() == train_->outputs(),
        "a target's scaling");
  if (image() && image()->size() != features()) {
    throw Error(fmt::format("{}: images of {} values, but {} features", name_, image()->size(),
                            features()));
  }
  if (sequence() && sequence()->size() != features()) {
    throw Error(fmt::format("{}: texts of {} × {} values, but {} features", name_,
                            sequence()->positions, sequence()->symbols, features()));
  }
}

std::size_t Dataset::outputs() const {
  return regression() ? train_->outputs() : static_cast<std::size_t>(classes_);
}

}  // namespace sotto
