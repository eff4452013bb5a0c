// Classification with a gradient that no example can move by more than C / batch, ready for noise:
// DP-SGD (Abadi et al. 2016, arXiv:1607.00133) up to the noise, which the optimizer adds
// (privacy_options.h, PrivacyUnit::example).
//
// The gradient of a round is (1 / batch) Σ clip_C(g_k) over a Poisson sample of the node's
// examples; `batch` is a constant, since the sample's size is private. Gradients are taken example
// by example. Thread safety and ownership: as Task; owns the task that it wraps.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include <sotto/optim/privacy/clipped_sum.h>
#include <sotto/trainers/data/poisson_sampler.h>
#include <sotto/trainers/tasks/supervised_task.h>
#include <sotto/trainers/tasks/task_decorator.h>

namespace sotto {

class ClippedTask final : public TaskDecorator {
 public:
  /// `task` over the examples that `sampler` draws, each gradient clipped to `clip_norm`; their sum
  /// is divided by `batch`, the expected number.
  ClippedTask(std::unique_ptr<SupervisedTask> task, PoissonSampler sampler, double clip_norm,
              double batch);

  /// The loss that it returns is the sample's mean, 0 for an empty one, and is private: it must not
  /// leave the node.
  double loss_and_gradient(Round round, std::span<const float> parameters,
                           std::span<float> gradient) override;

 private:
  SupervisedTask& supervised_;
  PoissonSampler sampler_;
  double batch_;
  ClippedSum sum_;
};

}  // namespace sotto
