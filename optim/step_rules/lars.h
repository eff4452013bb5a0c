// LARS: momentum SGD whose step is scaled tensor by tensor.
//
// Source: You, Gitman and Ginsburg, "Large batch training of convolutional networks", 2017,
// arXiv:1708.03888, Algorithm 1.
//
// Rule, for each tensor l with x, g, v its parts of the vectors, λ the weight decay and η the trust
// coefficient:
//   r = η ‖x‖ / (‖g‖ + λ ‖x‖);   v ← μ v + γ r (g + λ x);   d = v
// γ lies within the momentum, as in the paper: a new learning rate does not rescale v.
// r = 1 where ‖x‖ or ‖g‖ is zero. Tensors of fewer than two dimensions (biases, normalizations)
// have r = 1 and λ = 0, as in the authors' implementation (trust_ratio.h). Without a layout there
// is one ratio for the whole model.
//
// Choosing: η = 0.001 as in the paper, with γ so much larger than SGD's (the paper: 2 to 32).
// Memory: 1 float a parameter with momentum, else none. One thread at a time; allocates only in
// `resize`.
#pragma once

#include <sotto/kernels/vector.h>
#include <sotto/optim/step_rule.h>
#include <sotto/optim/step_rule_info.h>
#include <sotto/optim/step_rules/gradient_clip.h>
#include <sotto/optim/step_rules/learning_rate.h>

namespace sotto {

class Lars final : public StepRule {
 public:
  static const StepRuleInfo kInfo;

  /// Use make_step_rule, which validates `options`.
  Lars(const StepRuleOptions& options, const Ops& ops);

  std::string_view name() const override { return "lars"; }
  void resize(const ParameterLayout& layout) override;
  Status direction(Round round, std::span<const float> x, std::span<const float> gradient,
                   std::span<float> d) override;
  void set_learning_rate(double learning_rate) override { rate_.set(learning_rate); }
  void save(ByteBuffer& out) const override;
  Status load(ByteReader& in) override;

 private:
  const Ops& ops_;
  LearningRate rate_;
  GradientClip clip_;
  float momentum_;
  double weight_decay_;
  double trust_coefficient_;
  ParameterLayout layout_;
  Vector velocity_;
};

}  // namespace sotto
