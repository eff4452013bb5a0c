// A task: a model and its data, as one node sees them.
//
// Thread safety: a Task object belongs to one node (one thread). The data behind it
// (trainers/data/dataset.h) is immutable and shared.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include <sotto/base/ids.h>
#include <sotto/base/parameter_layout.h>

namespace sotto {

/// How good a model is on the test set. What a task does not have is a NaN.
struct Evaluation {
  double loss = 0;
  double accuracy = std::numeric_limits<double>::quiet_NaN();  ///< accuracy for classes: 0 … 1
  /// R² of a regression: 1 − Σ (ŷ − y)² / Σ (y − ȳ)², 1 at best; the mean over several targets.
  double r2 = std::numeric_limits<double>::quiet_NaN();
  /// The error of a regression: √ of the mean (ŷ − y)², in the file's units, over all targets.
  double rmse = std::numeric_limits<double>::quiet_NaN();
};

class Task {
 public:
  virtual ~Task() = default;

  /// The tensors that the parameters consist of, in order.
  virtual const ParameterLayout& layout() const = 0;
  std::size_t dimension() const { return dimension_of(layout()); }
  /// Writes the initial parameters: the same on every node for the same seed.
  virtual void initialize(std::span<float> parameters, std::uint64_t seed) const = 0;
  /// Rounds that make one epoch over all nodes' data.
  virtual Round rounds_per_epoch() const = 0;
  /// Loss and gradient on this node's batch of `round` (a function of round and seed alone, so that
  /// a resumed run sees the same data). Returns the mean loss.
  virtual double loss_and_gradient(Round round, std::span<const float> parameters,
                                   std::span<float> gradient) = 0;
  /// Loss, and accuracy or R², on the test set (for tasks without one: the global objective).
  virtual Evaluation evaluate(std::span<const float> parameters) = 0;
};

}  // namespace sotto
