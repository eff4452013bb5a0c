// What reads the same in the algorithms that learn Adam's variance, freeze it, and then send what
// they average through chunk owners, a bit an element.
//
// A building block of the algorithms, not for users.
#pragma once

#include <span>
#include <utility>

#include <sotto/base/check.h>
#include <sotto/optim/exchange/chunk_mean.h>
#include <sotto/optim/freeze_notice.h>
#include <sotto/optim/late_elements.h>
#include <sotto/optim/node_algorithm.h>
#include <sotto/optim/step_rules/adam.h>

namespace sotto {

/// An algorithm whose exchanges are those of one ChunkMean, which a round waits for.
class ChunkMeanAlgorithm : public NodeAlgorithm {
 public:
  Peers peers() const override { return mean_.peers(); }
  bool parameters_ready() const override { return !mean_.open(); }
  bool accepts_gradient() const override { return node_.in_round() && !mean_.open(); }
  bool idle() const override { return !node_.in_round(); }
  Result<bool> next_exchange(Exchange& out) override { return mean_.next_exchange(out); }
  AlgorithmCounters counters() const override {
    return {.saturated = node_.saturated(), .bad_frames = mean_.bad_frames()};
  }

  /// Adam's m, m̄ where it has been averaged.
  std::span<const float> momentum() const { return adam_.momentum(); }
  /// Adam's v.
  std::span<const float> variance() const { return adam_.variance(); }
  /// The mean, with its error memories δ_i and δ̄.
  const ChunkMean& chunk_mean() const { return mean_; }

 protected:
  /// Finds Adam's moments in the step rule.
  using FindMoments = Adam& (*)(StepRule& rule);

  /// A node whose step rule is Adam, or has its moments.
  ChunkMeanAlgorithm(const AlgorithmInfo& info, AlgorithmSetup setup,
                     FindMoments moments = Adam::of)
      : NodeAlgorithm(info, std::move(setup)), adam_(moments(node_.step_rule())), mean_(node_) {}

  /// What every round begins with. Fault::non_finite.
  Status enter(std::span<const float> gradient) const {
    check(accepts_gradient(), "a round takes one gradient");
    check(gradient.size() == node_.dimension(), "a gradient has the dimension of the parameters");
    return node_.require_finite(gradient, "gradient");
  }
  /// Writes the gradient as the frozen Adam takes it to `out`: clipped, with the weight decay, and
  /// without the elements that have no variance yet, which `late_` keeps.
  void freeze_gradient(std::span<const float> gradient, Round freeze_step,
                       std::vector<float>& out) {
    adam_.clip(gradient, out);
    late_.take_gradient(out, adam_, node_.round(), freeze_step);
    adam_.penalize(node_.x(), out);
  }

  FreezeNotice notice_;
  Adam& adam_;  // of node_'s step rule
  ChunkMean mean_;
  LateElements late_;
};

}  // namespace sotto
