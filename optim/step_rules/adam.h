// Adam and AdamW as step rules, and the form of Adam whose variance no longer moves.
//
// Source: torch.optim.Adam and torch.optim.AdamW, with bias correction and without AMSGrad (Kingma
// and Ba, "Adam: a method for stochastic optimization", ICLR 2015, arXiv:1412.6980; Loshchilov and
// Hutter, "Decoupled weight decay regularization", ICLR 2019, arXiv:1711.05101).
//
// Rule, after t gradients, g ← g + λ x first unless the decay is decoupled:
//   m ← β₁ m + (1 − β₁) g;   v ← β₂ v + (1 − β₂) g²
//   d = γ m̂ / (√v̂ + ε),   m̂ = m / (1 − β₁^t),   v̂ = v / (1 − β₂^t);   decoupled: d ← d + γ λ x
// Without bias correction m̂ = m and v̂ = v.
//
// Memory: 2 floats a parameter. One thread at a time; allocates only in `resize`.
#pragma once

#include <sotto/kernels/vector.h>
#include <sotto/optim/step_rule.h>
#include <sotto/optim/step_rule_info.h>
#include <sotto/optim/step_rules/gradient_clip.h>
#include <sotto/optim/step_rules/learning_rate.h>

namespace sotto {

/// Throws Error unless the momentum is 0, for rules with β₁ as momentum.
void refuse_momentum(const StepRuleOptions& options);

class Adam final : public StepRule {
 public:
  static const StepRuleInfo kAdam;
  static const StepRuleInfo kAdamW;

  /// Use make_step_rule, which validates `options`. AdamW when `decoupled`.
  Adam(const StepRuleOptions& options, bool decoupled, const Ops& ops);

  std::string_view name() const override { return decoupled_ ? "adamw" : "adam"; }
  void resize(const ParameterLayout& layout) override;
  Status direction(Round round, std::span<const float> x, std::span<const float> gradient,
                   std::span<float> d) override;
  bool separable() const override { return !clip_.clips(); }
  bool by_element() const override { return separable(); }
  void begin_parts(Round round) override;
  Status direction_part(std::size_t first, std::span<const float> x,
                        std::span<const float> gradient, std::span<float> d) override;
  void set_learning_rate(double learning_rate) override { rate_.set(learning_rate); }
  void save(ByteBuffer& out) const override;
  Status load(ByteReader& in) override;

  // For algorithms that exchange the momentum in place of the gradient (apm_squeeze.h).

  /// m, which they may replace.
  std::span<float> momentum() { return first_; }
  std::span<const float> momentum() const { return first_; }
  /// v, likewise
  std::span<const float> variance() const { return second_; }
  std::span<float> variance() { return second_; }
  /// ‖v̂‖₁; 0 before the first direction.
  double variance_norm() const;
  /// 1 / (1 − β₂) in whole rounds, at least 1: how far back v remembers.
  Round variance_memory() const { return variance_memory(beta2_); }
  /// variance_memory of a rule with this β₂.
  static Round variance_memory(float beta2);
  /// out ← g, clipped.
  void clip(std::span<const float> gradient, std::span<float> out) const {
    clip_.take(gradient, out);
  }
  /// Whether gradients are clipped.
  bool clips() const { return clip_.clips(); }
  /// λ
  double weight_decay() const { return weight_decay_; }
  /// g ← g + λ x
  void penalize(std::span<const float> x, std::span<float> g) const;
  /// g ← β₁ m + (1 − β₁) g: where a penalized gradient would take m, which stays as it is.
  void momentum_after(std::span<float> g) const;
  /// Writes d with m as it stands. With bias correction `always`, v̂ stays that of the last
  /// `direction`, while t in m̂ counts on; else d = γ m / (√v + ε). Zero where m is zero. Without
  /// decoupled weight decay only.
  void frozen_direction(Round round, std::span<float> d);
  /// v ← β₂ v + (1 − β₂) g², alone. Fault::non_finite when it overflows.
  Status observe(std::span<const float> gradient);
  /// γ, divided by 1 − β₁^t where m̂ is, as far as float32 holds it; counts t on.
  double next_rate(Round round);
  /// d ← step × u / (√v̂ + ε), where v̂ is v / (1 − β₂^s) after s updates, or v. Zero where u is
  /// zero.
  void precondition(double step, std::span<float> u, std::span<float> d);
  /// γ of a round.
  double learning_rate(Round round) const { return rate_.at(round); }
  /// Moments of elements that are not its own, after t penalized gradients.
  struct Moments {
    std::span<float> m;
    std::span<float> v;
    double beta1_power = 1;  ///< β₁^t
    double beta2_power = 1;  ///< β₂^t
    bool learns = true;      ///< v changes
  };
  /// Takes `moments` from t − 1 to t, their powers being those of t, and writes d over g, with the
  /// bias correction of `direction`.
  void step_with(double gamma, const Moments& moments, std::span<float> g) const;
  /// Moments for element k, in place of its own: those that leave m̂ and v̂ as they are in
  /// `moments`, which are of one element.
  void adopt(std::size_t k, const Moments& moments);
  /// The v that gives element k's v̂ after s updates, `updates_power` being β₂^s.
  float variance_after(std::size_t k, double updates_power) const;
  /// √v̂ + ε of a v, which need not be its own: `updates_power` is β₂^s after its s updates.
  double denominator_of(float v, double updates_power) const;
  /// β₂^s of its own v.
  double variance_power() const { return beta2_power_; }
  float beta1() const { return beta1_; }
  float beta2() const { return beta2_; }
  /// The rule that an algorithm admitted as `adam` was given.
  static Adam& of(StepRule& rule);

 private:
  /// 1 / √(1 − β₂^s), or 1 where v̂ is v.
  float root_scale(double updates_power) const;
  /// d ← the direction of the gradient d, from element `first` of the model on.
  Status step(std::size_t first, std::span<const float> x, std::span<float> d);
  /// Fault::non_finite unless `count` elements of v from `first` on are finite.
  Status require_finite_variance(std::size_t first, std::size_t count) const;

  const Ops& ops_;
  LearningRate rate_;
  GradientClip clip_;
  float beta1_;
  float beta2_;
  float epsilon_;
  double weight_decay_;
  bool decoupled_;
  BiasCorrection correction_;
  double beta1_power_ = 1;  // β₁^t
  double beta2_power_ = 1;  // β₂^t
  double gamma_ = 0;        // γ of the round
  Vector first_;
  Vector second_;
};

}  // namespace sotto
