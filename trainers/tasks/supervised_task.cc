#include <sotto/trainers/tasks/supervised_task.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
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

/// Σ (y − ȳ)² of each target.
std::vector<double> spreads_of(const Examples& examples) {
  const std::size_t outputs = examples.outputs();
  const auto targets = examples.targets();
  std::vector<double> spreads;
  for (std::size_t k = 0; k < outputs; ++k) {
    double sum = 0;
    for (std::size_t at = k; at < targets.size(); at += outputs) {
      sum += static_cast<double>(targets[at]);
    }
    const double mean = sum / static_cast<double>(examples.size());
    double spread = 0;
    for (std::size_t at = k; at < targets.size(); at += outputs) {
      const double away = static_cast<double>(targets[at]) - mean;
      spread += away * away;
    }
    spreads.push_back(spread);
  }
  return spreads;
}

/// Figures from squared errors of scaled targets, summed over `examples` examples. A target that is
/// the same in all of them has no R².
Evaluation regression_figures(std::span<const double> squares, std::span<const double> spreads,
                              std::span<const FeatureScaling> scaling, std::size_t examples) {
  const std::size_t outputs = squares.size();
  const double errors = static_cast<double>(examples * outputs);
  double scaled = 0;
  double plain = 0;  // in the file's units
  double r2 = 0;
  std::size_t varied = 0;
  for (std::size_t k = 0; k < outputs; ++k) {
    const double factor = scaling.empty() ? 1 : scaling[k].factor;
    scaled += squares[k];
    plain += squares[k] / factor / factor;
    if (spreads[k] > 0) {
      r2 += 1 - squares[k] / spreads[k];
      ++varied;
    }
  }
  return {.loss = scaled / errors / 2,
          .r2 = varied > 0 ? r2 / static_cast<double>(varied)
                           : std::numeric_limits<double>::quiet_NaN(),
          .rmse = std::sqrt(plain / errors)};
}

/// What a gradient or an evaluation needs while it is taken. Tasks of one thread use it in turn: a
/// simulation has thousands of them.
struct Workspace {
  std::vector<float> x;               ///< rows × features
  std::vector<float> score_gradient;  ///< rows × positions × outputs
};

Workspace& workspace() {
  thread_local Workspace of_thread;
  return of_thread;
}

}  // namespace

SupervisedTask::SupervisedTask(std::shared_ptr<const Dataset> data, std::unique_ptr<Model> model,
                               Sampler sampler, std::size_t examples_per_round)
    : data_(std::move(data)), model_(std::move(model)), sampler_(std::move(sampler)) {
  check(data_ != nullptr && model_ != nullptr && examples_per_round > 0,
        "a supervised task's parts");
  outputs_ = data_->outputs();
  positions_ = model_->positions();
  const std::uint64_t per_round = std::uint64_t{examples_per_round} * positions_;
  rounds_per_epoch_ = (data_->train().size() + per_round - 1) / per_round;
  labels_.resize(positions_);
  spreads_ = spreads_of(data_->test());
}

void SupervisedTask::initialize(std::span<float> parameters, std::uint64_t seed) const {
  check(parameters.size() == dimension(), "initialize: parameters of the task's dimension");
  model_->initialize(parameters, seed);
}

std::span<const float> SupervisedTask::scores_of(const Examples& examples,
                                                 std::span<const float> parameters,
                                                 std::span<const std::uint32_t> rows) {
  std::vector<float>& x = workspace().x;
  read_features(examples, rows, x);
  return model_->forward(parameters, x, rows.size());
}

void SupervisedTask::read_features(const Examples& examples, std::span<const std::uint32_t> rows,
                                   std::vector<float>& x) const {
  const std::size_t features = data_->features();
  x.resize(rows.size() * features);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    examples.copy_row(rows[i], std::span(x).subspan(i * features, features));
  }
}

double SupervisedTask::loss_and_gradient(Round round, std::span<const float> parameters,
                                         std::span<float> gradient) {
  return loss_and_gradient_on(sampler_.batch(round), parameters, gradient);
}

double SupervisedTask::class_losses(std::span<const std::uint32_t> rows,
                                    std::span<const float> scores, double scale,
                                    std::span<float> gradients) {
  double loss = 0;
  std::size_t at = 0;
  for (const std::uint32_t row : rows) {
    data_->train().copy_labels(row, labels_);
    for (const std::int32_t truth : labels_) {
      const auto label = static_cast<std::size_t>(truth);
      loss += cross_entropy_gradient(scores.subspan(at, outputs_),
                                     flipped_ ? outputs_ - 1 - label : label, scale,
                                     gradients.subspan(at, outputs_));
      at += outputs_;
    }
  }
  return loss;
}

double SupervisedTask::target_losses(std::span<const std::uint32_t> rows,
                                     std::span<const float> predicted, double scale,
                                     std::span<float> gradients) {
  const auto targets = data_->train().targets();
  const double share = 1 / static_cast<double>(outputs_);
  double loss = 0;
  std::size_t at = 0;
  for (const std::uint32_t row : rows) {
    for (const float target : targets.subspan(row * outputs_, outputs_)) {
      const double truth = flipped_ ? -static_cast<double>(target) : static_cast<double>(target);
      const double away = static_cast<double>(predicted[at]) - truth;
      loss += share * away * away / 2;
      gradients[at++] = static_cast<float>(scale * share * away);
    }
  }
  return loss;
}

double SupervisedTask::loss_and_gradient_on(std::span<const std::uint32_t> rows,
                                            std::span<const float> parameters,
                                            std::span<float> gradient) {
  check(parameters.size() == dimension() && gradient.size() == dimension(),
        "loss_and_gradient: parameters and gradient of the task's dimension");
  std::vector<float>& score_gradient = workspace().score_gradient;
  score_gradient.resize(rows.size() * positions_ * outputs_);
  const double loss = loss_of(rows, scores_of(data_->train(), parameters, rows), score_gradient);
  model_->backward(parameters, score_gradient, gradient);
  return loss;
}

double SupervisedTask::loss_of(std::span<const std::uint32_t> rows, std::span<const float> scores,
                               std::span<float> score_gradient) {
  check(scores.size() == rows.size() * positions_ * outputs_ &&
            score_gradient.size() == scores.size(),
        "loss_of: rows × positions × outputs scores, and as many gradients");
  const double scale = 1.0 / static_cast<double>(rows.size() * positions_);
  return scale * (data_->regression() ? target_losses(rows, scores, scale, score_gradient)
                                      : class_losses(rows, scores, scale, score_gradient));
}

Evaluation SupervisedTask::evaluate(std::span<const float> parameters) {
  check(parameters.size() == dimension(), "evaluate: parameters of the task's dimension");
  return data_->regression() ? evaluate_targets(parameters) : evaluate_classes(parameters);
}

template <typename Judge>
void SupervisedTask::for_test_examples(std::span<const float> parameters, const Judge& judge) {
  const Examples& test = data_->test();
  const std::size_t chunk = evaluation_rows(data_->features(), positions_);
  std::vector<std::uint32_t> rows;
  for (std::size_t next = 0; next < test.size();) {
    rows.clear();
    for (; next < test.size() && rows.size() < chunk; next += positions_) {
      rows.push_back(static_cast<std::uint32_t>(next));
    }
    judge(rows, scores_of(test, parameters, rows));
  }
}

Evaluation SupervisedTask::evaluate_classes(std::span<const float> parameters) {
  const Examples& test = data_->test();
  double loss = 0;
  std::size_t count = 0;
  std::size_t correct = 0;
  for_test_examples(parameters,
                    [&](std::span<const std::uint32_t> rows, std::span<const float> scores) {
                      for (const std::uint32_t row : rows) {
                        test.copy_labels(row, labels_);
                        for (const std::int32_t number : labels_) {
                          const auto label = static_cast<std::size_t>(number);
                          const auto at = scores.first(outputs_);
                          loss += cross_entropy(at, label);
                          const auto best = std::max_element(at.begin(), at.end()) - at.begin();
                          correct += static_cast<std::size_t>(best) == label;
                          scores = scores.subspan(outputs_);
                          ++count;
                        }
                      }
                    });
  const auto predictions = static_cast<double>(count);
  return {.loss = loss / predictions, .accuracy = static_cast<double>(correct) / predictions};
}

Evaluation SupervisedTask::evaluate_targets(std::span<const float> parameters) {
  const auto targets = data_->test().targets();
  std::vector<double> squares(outputs_);  // Σ (ŷ − y)²
  for_test_examples(parameters,
                    [&](std::span<const std::uint32_t> rows, std::span<const float> predicted) {
                      for (std::size_t i = 0; i < rows.size(); ++i) {
                        for (std::size_t k = 0; k < outputs_; ++k) {
                          const double away = static_cast<double>(predicted[i * outputs_ + k]) -
                                              static_cast<double>(targets[rows[i] * outputs_ + k]);
                          squares[k] += away * away;
                        }
                      }
                    });
  return regression_figures(squares, spreads_, data_->target_scaling(), data_->test().size());
}

}  // namespace sotto
