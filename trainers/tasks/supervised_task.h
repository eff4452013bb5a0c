// Classification and regression: a model and a node's share of a data set as a Task.
//
// Loss of a classification: mean cross-entropy of the softmax,
// L = (1/B) Σ (log Σ_k exp s_k − s_label), accumulated in double; the logarithm of the sum is taken
// relative to the largest score, so nothing overflows. With a model of sequences it is the mean
// over all positions of the B examples. Neighbouring examples of a text share all but one position,
// so that an epoch and the test set are then counted in positions: every positions-th test example
// is taken.
//
// Loss of a regression with K targets: half the mean squared error over examples and targets,
// L = (1/2BK) Σ (ŷ − y)², the targets scaled to deviation 1, so that a model that knows their means
// alone has 1/2. R² and RMSE are those of the file's own units.
//
// Thread safety and ownership: as Task; the data set is shared, the model and the sampler owned.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <sotto/trainers/data/dataset.h>
#include <sotto/trainers/data/sampler.h>
#include <sotto/trainers/tasks/model.h>
#include <sotto/trainers/tasks/task.h>

namespace sotto {

class SupervisedTask final : public Task {
 public:
  /// `examples_per_round` are those of all nodes' batches together; they set the length of an
  /// epoch.
  SupervisedTask(std::shared_ptr<const Dataset> data, std::unique_ptr<Model> model, Sampler sampler,
                 std::size_t examples_per_round);

  /// Trains from now on with labels c − 1 − y of c classes, or on targets −y: an attack, for tests
  /// (label_flip).
  void flip_labels() { flipped_ = true; }

  const ParameterLayout& layout() const override { return model_->layout(); }
  void initialize(std::span<float> parameters, std::uint64_t seed) const override;
  /// ⌈training examples / (nodes × batch × positions)⌉
  Round rounds_per_epoch() const override { return rounds_per_epoch_; }
  double loss_and_gradient(Round round, std::span<const float> parameters,
                           std::span<float> gradient) override;
  /// Loss and gradient on these training examples, at least one; more than a batch may be given.
  double loss_and_gradient_on(std::span<const std::uint32_t> rows,
                              std::span<const float> parameters, std::span<float> gradient);
  Evaluation evaluate(std::span<const float> parameters) override;

  // A gradient in pieces, for a caller that takes the model's passes apart.

  /// The model.
  Model& model() { return *model_; }
  /// This node's training examples of a round.
  std::span<const std::uint32_t> batch(Round round) { return sampler_.batch(round); }
  /// Writes the features of training examples, rows × features, to x.
  void read_features(std::span<const std::uint32_t> rows, std::vector<float>& x) const {
    read_features(data_->train(), rows, x);
  }
  /// The mean loss of training examples by their scores, rows × positions × outputs; writes its
  /// gradient, as long as these.
  double loss_of(std::span<const std::uint32_t> rows, std::span<const float> scores,
                 std::span<float> score_gradient);

 private:
  void read_features(const Examples& examples, std::span<const std::uint32_t> rows,
                     std::vector<float>& x) const;
  /// Reads the features of `rows` examples, and scores them: rows × positions × outputs.
  std::span<const float> scores_of(const Examples& examples, std::span<const float> parameters,
                                   std::span<const std::uint32_t> rows);

  /// The loss summed over training examples and positions; writes scale × its gradient.
  double class_losses(std::span<const std::uint32_t> rows, std::span<const float> scores,
                      double scale, std::span<float> gradients);
  double target_losses(std::span<const std::uint32_t> rows, std::span<const float> predicted,
                       double scale, std::span<float> gradients);
  Evaluation evaluate_classes(std::span<const float> parameters);
  Evaluation evaluate_targets(std::span<const float> parameters);
  /// Calls `judge` with test examples and their scores, some at a time.
  template <typename Judge>
  void for_test_examples(std::span<const float> parameters, const Judge& judge);

  std::shared_ptr<const Dataset> data_;
  std::unique_ptr<Model> model_;
  Sampler sampler_;
  std::size_t outputs_;  // outputs of an example, or at each position of it
  bool flipped_ = false;
  std::size_t positions_;  // positions of an example at which the model predicts
  Round rounds_per_epoch_;
  std::vector<std::int32_t> labels_;  // labels of the positions of one example
  std::vector<double> spreads_;       // Σ (y − ȳ)² of each target, over the test set
};

}  // namespace sotto
