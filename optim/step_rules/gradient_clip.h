// Gradient clipping by the global norm, in front of a step rule.
//
// Source: torch.nn.utils.clip_grad_norm_ over all parameters (Pascanu et al. 2013,
// arXiv:1211.5063):
//   g ← g · min(1, MAX / (‖g‖₂ + 1e-6)),  before weight decay and momentum.
// ‖g‖₂ is that of the whole gradient that the rule is given, over all tensors: with `allreduce` the
// average gradient's, with algorithms that step on their own gradient the node's own.
// A plain value without memory; one thread at a time.
#pragma once

#include <limits>
#include <span>

#include <sotto/kernels/ops.h>

namespace sotto {

class GradientClip {
 public:
  /// `max_norm` is positive; infinity: gradients pass as they are.
  GradientClip(double max_norm, const Ops& ops) : ops_(&ops), max_norm_(max_norm) {}

  /// Whether any gradient is changed.
  bool clips() const { return max_norm_ < std::numeric_limits<double>::infinity(); }
  /// min(1, MAX / (‖g‖₂ + 1e-6))
  float factor(std::span<const float> gradient) const;
  /// out ← g, clipped. Both have one length and may be the same span.
  void take(std::span<const float> gradient, std::span<float> out) const;

 private:
  const Ops* ops_;
  double max_norm_;
};

}  // namespace sotto
