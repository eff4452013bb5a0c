// What reads the same in the algorithms that learn Adam's variance, freeze it, and then send what
// they average through chunk owners, a bit an element.
//
// A building block of the algorithms, not for users.
#pragma once

#include <span>
#include <utility>
#include <vector>

#include <sotto/optim/chunk_mean_algorithm.h>
#include <sotto/optim/frozen_adam/freeze_notice.h>
#include <sotto/optim/frozen_adam/late_elements.h>
#include <sotto/optim/step_rules/adam.h>

namespace sotto {

/// A ChunkMeanAlgorithm with Adam, or a rule that has its moments, as step rule.
class AdamMeanAlgorithm : public ChunkMeanAlgorithm {
 public:
  /// Adam's m, m̄ where it has been averaged.
  std::span<const float> momentum() const { return adam_.momentum(); }
  /// Adam's v.
  std::span<const float> variance() const { return adam_.variance(); }

 protected:
  /// Finds Adam's moments in the step rule.
  using FindMoments = Adam& (*)(StepRule& rule);

  /// A node with a step rule that `moments` looks into.
  AdamMeanAlgorithm(const AlgorithmInfo& info, AlgorithmSetup setup, FindMoments moments = Adam::of)
      : ChunkMeanAlgorithm(info, std::move(setup)), adam_(moments(node_.step_rule())) {}

  /// Writes the gradient as the frozen Adam takes it to `out`: clipped, with the weight decay, and
  /// without the elements that have no variance yet, which `late_` keeps.
  void freeze_gradient(std::span<const float> gradient, Round freeze_step,
                       std::vector<float>& out) {
    adam_.clip(gradient, out);
    late_.take_gradient(out, adam_, node_.round(), freeze_step);
    adam_.penalize(node_.x(), out);
  }

  FreezeNotice notice_;
  Adam& adam_;  // the step rule of node_, or its Adam
  LateElements late_;
};

}  // namespace sotto
