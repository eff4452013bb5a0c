#include <sotto/trainers/supervised_task.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

#include <sotto/base/check.h>

namespace sotto {
namespace {

/// Examples of one forward pass of an evaluation: enough to keep a matrix product busy, few enough
/// to stay small for any number of features and positions.
std::size_t evaluation_rows(std::size_t features, std::size_t positions) {
  constexpr std::size_t kRows = 256;
  constexpr std::size_t kValues = std::size_t{1} << 22;
  return std::max(std::min(kValues / features, kRows / positions), std::size_t{1});
}

/// −log softmax(scores)[label]
double cross_entropy(std::span<const float> scores, std::size_t label) {
  const float largest = *std::max_element(scores.begin(), scores.end());
  double sum = 0;
  for (const float score : scores) {
    sum += std::exp(static_cast<double>(score) - static_cast<double>(largest));
  }
  return std::log(sum) + static_cast<double>(largest) - static_cast<double>(scores[label]);
}

/// Writes scale × ∂(−log softmax(scores)[label]) / ∂scores, and returns the loss.
double cross_entropy_gradient(std::span<const float> scores, std::size_t label, double scale,
                              std::span<float> gradient) {
  const double loss = cross_entropy(scores, label);
  const double log_sum = loss + static_cast<double>(scores[label]);
  for (std::size_t k = 0; k < scores.size(); ++k) {
    const double probability = std::exp(static_cast<double>(scores[k]) - log_sum);
    gradient[k] = static_cast<float>(scale * (probability - (k == label ? 1 : 0)));
  }
  return loss;
}

}  // namespace

SupervisedTask::SupervisedTask(std::shared_ptr<const Dataset> data, std::unique_ptr<Model> model,
                               Sampler sampler, int nodes)
    : data_(std::move(data)), model_(std::move(model)), sampler_(std::move(sampler)) {
  check(data_ != nullptr && model_ != nullptr && nodes > 0, "a supervised task's parts");
  classes_ = static_cast<std::size_t>(data_->classes());
  positions_ = model_->positions();
  const std::uint64_t per_round =
      std::uint64_t{sampler_.batch_size()} * positions_ * static_cast<unsigned>(nodes);
  rounds_per_epoch_ = (data_->train().size() + per_round - 1) / per_round;
  x_.resize(sampler_.batch_size() * data_->features());
  score_gradient_.resize(sampler_.batch_size() * positions_ * classes_);
  labels_.resize(positions_);
}

void SupervisedTask::initialize(std::span<float> parameters, std::uint64_t seed) const {
  check(parameters.size() == dimension(), "initialize: parameters of the task's dimension");
  model_->initialize(parameters, seed);
}

std::span<const float> SupervisedTask::scores_of(const Examples& examples,
                                                 std::span<const float> parameters,
                                                 std::span<const std::uint32_t> rows) {
  const std::size_t features = data_->features();
  x_.resize(rows.size() * features);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    examples.copy_row(rows[i], std::span(x_).subspan(i * features, features));
  }
  return model_->forward(parameters, x_, rows.size());
}

double SupervisedTask::loss_and_gradient(Round round, std::span<const float> parameters,
                                         std::span<float> gradient) {
  return loss_and_gradient_on(sampler_.batch(round), parameters, gradient);
}

double SupervisedTask::loss_and_gradient_on(std::span<const std::uint32_t> rows,
                                            std::span<const float> parameters,
                                            std::span<float> gradient) {
  check(parameters.size() == dimension() && gradient.size() == dimension(),
        "loss_and_gradient: parameters and gradient of the task's dimension");
  score_gradient_.resize(rows.size() * positions_ * classes_);
  const auto scores = scores_of(data_->train(), parameters, rows);
  const double scale = 1.0 / static_cast<double>(rows.size() * positions_);
  double loss = 0;
  std::size_t at = 0;
  for (const std::uint32_t row : rows) {
    data_->train().copy_labels(row, labels_);
    for (const std::int32_t truth : labels_) {
      const auto label = static_cast<std::size_t>(truth);
      loss += cross_entropy_gradient(scores.subspan(at, classes_),
                                     flipped_ ? classes_ - 1 - label : label, scale,
                                     std::span(score_gradient_).subspan(at, classes_));
      at += classes_;
    }
  }
  model_->backward(parameters, score_gradient_, gradient);
  return loss * scale;
}

Evaluation SupervisedTask::evaluate(std::span<const float> parameters) {
  check(parameters.size() == dimension(), "evaluate: parameters of the task's dimension");
  const Examples& test = data_->test();
  const std::size_t chunk = evaluation_rows(data_->features(), positions_);
  std::vector<std::uint32_t> rows;
  double loss = 0;
  std::size_t count = 0;
  std::size_t correct = 0;
  for (std::size_t next = 0; next < test.size();) {
    rows.clear();
    for (; next < test.size() && rows.size() < chunk; next += positions_) {
      rows.push_back(static_cast<std::uint32_t>(next));
    }
    auto scores = scores_of(test, parameters, rows);
    for (const std::uint32_t row : rows) {
      test.copy_labels(row, labels_);
      for (const std::int32_t number : labels_) {
        const auto label = static_cast<std::size_t>(number);
        const auto at = scores.first(classes_);
        loss += cross_entropy(at, label);
        const auto best = std::max_element(at.begin(), at.end()) - at.begin();
        correct += static_cast<std::size_t>(best) == label;
        scores = scores.subspan(classes_);
        ++count;
      }
    }
  }
  const auto predictions = static_cast<double>(count);
  return {.loss = loss / predictions, .accuracy = static_cast<double>(correct) / predictions};
}

}  // namespace sotto
