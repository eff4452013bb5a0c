// LAMB: Adam whose step is scaled tensor by tensor.
//
// Source: You et al., "Large batch optimization for deep learning: training BERT in 76 minutes",
// ICLR 2020, arXiv:1904.00962, Algorithm 2 with φ(z) = z and bias correction.
//
// Rule, for each tensor with x, u, d its parts of the vectors, m̂ and v̂ Adam's (adam.h) and λ the
// weight decay:
//   u = m̂ / (√v̂ + ε) + λ x;   d = γ (‖x‖ / ‖u‖) u
// The ratio is 1 where either norm is zero. Tensors of fewer than two dimensions (biases,
// normalizations) have ratio 1 and λ = 0, as in the authors' implementation (trust_ratio.h).
// Without a layout there is one ratio for the whole model.
//
// Memory: 2 floats a parameter. One thread at a time; allocates only in `resize`.
#pragma once

#include <vector>

#include <sotto/optim/step_rule.h>
#include <sotto/optim/step_rule_info.h>
#include <sotto/optim/step_rules/adam.h>
#include <sotto/optim/step_rules/learning_rate.h>

namespace sotto {

class Lamb final : public StepRule {
 public:
  static const StepRuleInfo kInfo;

  /// Use make_step_rule, which validates `options`.
  Lamb(const StepRuleOptions& options, const Ops& ops);

  std::string_view name() const override { return "lamb"; }
  void resize(const ParameterLayout& layout) override;
  Status direction(Round round, std::span<const float> x, std::span<const float> gradient,
                   std::span<float> d) override;
  void set_learning_rate(double learning_rate) override { rate_.set(learning_rate); }
  void save(ByteBuffer& out) const override;
  Status load(ByteReader& in) override;

  // For 1-bit LAMB, which takes these over when it freezes the variance (onebit_lamb.h).

  const ParameterLayout& layout() const { return layout_; }
  /// m and v, with γ = 1 and λ = 0.
  Adam& moments() { return adam_; }
  /// ‖x‖ / ‖u‖ of the last direction, by tensor; 1 where there was none.
  std::span<const double> ratios() const { return ratios_; }
  /// ‖x‖ / ‖u‖ of a tensor, u being its part of a direction; 1 where one of them is 0.
  double trust_ratio(const ParameterBlock& block, std::span<const float> x,
                     std::span<const float> u) const;
  /// u ← u + λ x, where the tensor decays.
  void decay(const ParameterBlock& block, std::span<const float> x, std::span<float> u) const;
  /// γ of a round.
  double learning_rate(Round round) const { return rate_.at(round); }
  /// The rule that an algorithm admitted as `lamb` was given.
  static Lamb& of(StepRule& rule);

 private:
  const Ops& ops_;
  LearningRate rate_;
  double weight_decay_;
  Adam adam_;  ///< Adam with γ = 1 and λ = 0: gives m̂ / (√v̂ + ε)
  ParameterLayout layout_;
  std::vector<double> ratios_;
};

}  // namespace sotto
