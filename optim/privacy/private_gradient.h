// An algorithm behind the Gaussian mechanism: it never sees a gradient, only the noisy one.
//
// The gradient is the only thing that an algorithm learns of a node's data (algorithm.h). With the
// mechanism in front of it, models, messages, error buffers, moments and replicas are all
// post-processing, so that every algorithm, compressor and graph keeps the promise, with local
// steps too. A StepBudget counts the steps, a step beyond it is refused, and the count is part of
// the saved state.
//
// Thread safety and ownership: as Algorithm; owns the inner one.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include <sotto/optim/privacy/gaussian_mechanism.h>
#include <sotto/optim/privacy/step_budget.h>
#include <sotto/optim/wrappers/forwarding_algorithm.h>

namespace sotto {

class PrivateGradient final : public ForwardingAlgorithm {
 public:
  /// Hides gradients as budget->options() say, and counts each step in `budget`.
  PrivateGradient(std::unique_ptr<Algorithm> inner, std::shared_ptr<StepBudget> budget, Rank rank);

  /// Fault::budget when the step would cost more than is left; nothing has changed then, as with a
  /// gradient that is not finite. Any other gradient counts as a step.
  Status take_gradient(std::span<const float> gradient) override;
  void save(ByteBuffer& out) const override;
  /// Never lowers the steps that the budget counts.
  Status load(ByteReader& in) override;

 private:
  Status fault(Fault kind, std::string_view message) const;

  std::shared_ptr<StepBudget> budget_;
  Rank rank_;
  GaussianMechanism mechanism_;
  std::vector<float> released_;
};

}  // namespace sotto
