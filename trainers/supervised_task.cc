#include <sotto/trainers/supervised_task.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

#include <sotto/base/check.h>

namespace sotto {
namespace {

/// Rows of one forward pass of an evaluation: enough to keep a matrix product busy, few enough to
/// stay small for any number of features.
std::size_t evaluation_rows(std::size_t features) {
  constexpr std::size_t kRows = 256;
  constexpr std::size_t kValues = std::size_t{1} << 22;
  return std::clamp(kValues / features, std::size_t{1}, kRows);
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
  const std::uint64_t per_round =
      std::uint64_t{sampler_.batch_size()} * static_cast<unsigned>(nodes);
  rounds_per_epoch_ = (data_->train().size() + per_round - 1) / per_round;
  x_.resize(sampler_.batch_size() * data_->features());
  score_gradient_.resize(sampler_.batch_size() * static_cast<std::size_t>(data_->classes()));
}

void SupervisedTask::initialize(std::span<float> parameters, std::uint64_t seed) const {
  check(parameters.size() == dimension(), "initialize: parameters of the task's dimension");
  model_->initialize(parameters, seed);
}

double SupervisedTask::loss_and_gradient(Round round, std::span<const float> parameters,
                                         std::span<float> gradient) {
  check(parameters.size() == dimension() && gradient.size() == dimension(),
        "loss_and_gradient: parameters and gradient of the task's dimension");
  const Examples& train = data_->train();
  const std::size_t features = data_->features();
  const auto classes = static_cast<std::size_t>(data_->classes());
  const auto rows = sampler_.batch(round);
  x_.resize(rows.size() * features);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    train.copy_row(rows[i], std::span(x_).subspan(i * features, features));
  }
  const auto scores = model_->forward(parameters, x_, rows.size());
  const double scale = 1.0 / static_cast<double>(rows.size());
  double loss = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    loss += cross_entropy_gradient(scores.subspan(i * classes, classes),
                                   static_cast<std::size_t>(train.labels()[rows[i]]), scale,
                                   std::span(score_gradient_).subspan(i * classes, classes));
  }
  model_->backward(parameters, score_gradient_, gradient);
  return loss * scale;
}

Evaluation SupervisedTask::evaluate(std::span<const float> parameters) {
  check(parameters.size() == dimension(), "evaluate: parameters of the task's dimension");
  const Examples& test = data_->test();
  const std::size_t features = data_->features();
  const auto classes = static_cast<std::size_t>(data_->classes());
  const std::size_t chunk = evaluation_rows(features);
  double loss = 0;
  std::size_t correct = 0;
  for (std::size_t begin = 0; begin < test.size(); begin += chunk) {
    const std::size_t rows = std::min(chunk, test.size() - begin);
    x_.resize(rows * features);
    for (std::size_t i = 0; i < rows; ++i) {
      test.copy_row(begin + i, std::span(x_).subspan(i * features, features));
    }
    const auto scores = model_->forward(parameters, x_, rows);
    for (std::size_t i = 0; i < rows; ++i) {
      const auto row = scores.subspan(i * classes, classes);
      const auto label = static_cast<std::size_t>(test.labels()[begin + i]);
      loss += cross_entropy(row, label);
      const auto best = std::max_element(row.begin(), row.end()) - row.begin();
      correct += static_cast<std::size_t>(best) == label;
    }
  }
  const auto count = static_cast<double>(test.size());
  return {.loss = loss / count, .accuracy = static_cast<double>(correct) / count};
}

}  // namespace sotto
