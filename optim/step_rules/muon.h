// Muon: momentum SGD for matrices, whose steps have nearly equal singular values.
//
// Source: Jordan et al., "Muon: an optimizer for hidden layers in neural networks", 2024,
// https://kellerjordan.github.io/posts/muon, whose code the momentum follows; as the local rule of
// DiLoCo: Thérien et al., "MuLoCo: Muon is a practical inner optimizer for DiLoCo", 2025,
// arXiv:2505.23725.
//
// Rule, for each matrix x of r × c (a tensor of more dimensions is cut after its first), g its part
// of the gradient, μ the momentum, M = 0 at first, λ the weight decay, which is decoupled:
//   M ← M + (1 − μ) (g − M);   U = M, or (1 − μ) g + μ M in Nesterov's form
//   d = γ s X + γ λ x,   X the five Newton–Schulz steps from U (newton_schulz.h)
// s is one of (StepRuleOptions::update_scale):
//   original   √max(1, r/c), the source's
//   spectral   √(r/c), which moves outputs alike in layers of every shape
//   adamw      0.2 √max(r, c), steps as long as AdamW's, whose rates then carry over
//     (Liu et al., "Muon is scalable for LLM training", 2025, arXiv:2502.16982)
// The momentum is an average of gradients, where that of `sgd` is a sum. As X does not depend on
// the
//   length of U, that makes no difference.
// Vectors have no such form, and embeddings and output layers are better off with another rule:
//   without rules by tensor of its own a specification `muon` stands for
//   "muon; ends=adamw; 1d=adamw" (by_tensor.h). A tensor without two dimensions is refused.
//
// Memory: 1 float a parameter with momentum, and newton_schulz.h's for the largest matrix. One
// thread at a time; allocates only in `resize`. Vectors lie with the host.
#pragma once

#include <sotto/kernels/vector.h>
#include <sotto/optim/step_rule.h>
#include <sotto/optim/step_rule_info.h>
#include <sotto/optim/step_rules/gradient_clip.h>
#include <sotto/optim/step_rules/learning_rate.h>
#include <sotto/optim/step_rules/newton_schulz.h>

namespace sotto {

class Muon final : public StepRule {
 public:
  static const StepRuleInfo kInfo;

  /// Use make_step_rule, which validates `options`.
  Muon(const StepRuleOptions& options, const Ops& ops);

  std::string_view name() const override { return "muon"; }
  /// Throws Error for a tensor that is no matrix, and where there is none.
  void resize(const ParameterLayout& layout) override;
  Status direction(Round round, std::span<const float> x, std::span<const float> gradient,
                   std::span<float> d) override;
  bool separable() const override { return !clip_.clips(); }
  void begin_parts(Round round) override { round_rate_ = rate_.at(round); }
  Status direction_part(std::size_t first, std::span<const float> x,
                        std::span<const float> gradient, std::span<float> d) override {
    return direction_of(1, first, x, gradient, d);
  }
  void set_learning_rate(double learning_rate) override { rate_.set(learning_rate); }
  void save(ByteBuffer& out) const override;
  Status load(ByteReader& in) override;

 private:
  /// d ← the direction of the gradient, all from element `first` of the model on.
  Status direction_of(float clip, std::size_t first, std::span<const float> x,
                      std::span<const float> gradient, std::span<float> d);
  /// The direction of one matrix, likewise. Whether M and d are finite.
  bool matrix_direction(float clip, const ParameterBlock& matrix, std::span<const float> x,
                        std::span<const float> gradient, std::span<float> d);

  const Ops& ops_;
  LearningRate rate_;
  GradientClip clip_;
  double momentum_;  // μ
  bool nesterov_;
  double weight_decay_;
  UpdateScale scale_;
  NewtonSchulz steps_;
  double round_rate_ = 0;  // γ of the round
  ParameterLayout layout_;
  Vector moment_;  // M
};

}  // namespace sotto
