// Quasi-global momentum: SGD whose momentum is of how the node's model moved, with what its
// neighbours' models added, and not of the node's own gradients.
//
// Source: Lin, Karimireddy, Stich and Jaggi, "Quasi-global momentum: accelerating decentralized
// deep learning on heterogeneous data", ICML 2021, arXiv:2102.04761, Algorithm 1 (QG-DSGDm); with
// Nesterov's form, QG-DSGDm-N, the authors' default with μ = 0.9.
//
// Rule, g ← g + λ x first, μ the momentum, m = 0 at first, x⁻ and γ⁻ those of the direction before:
//   1. m ← μ m + (1 − μ) (x⁻ − x) / γ⁻
//   2. u = μ m + g, or g + μ (μ m + g) in Nesterov's form;  d = γ u
// The paper does 1. at the end of a round, when the model has been mixed. Nothing reads m before
//   the next direction, at the x that mixing has made: 1. is done there, to the same numbers.
// Where mixing leaves the mean model as it is, the mean over the nodes follows d̄ = γ (μ m̄ + ḡ),
//   m̄ ← μ m̄ + (1 − μ) d̄/γ exactly, whatever the graph and the compressor (with the unbiased ones
//   of dcd and ecd on average). Where gradients are constant that is γ g / (1 − μ), as with heavy
//   ball; m̄ remembers 1/(1 − μ)² rounds.
// A node whose data differ from the others' pushes its model one way in every round, and
//   neighbours pull it back: m is of both, so that the node does not speed up on its own.
// What a compressor adds to the pull is in m too, and comes back 1/(1 − μ) times as large: models
//   were seen to drift apart with sign and lowrank at μ = 0.9, not with 2 bits and more.
// 1. is left out where γ⁻ < 1e-8, which says nothing of how x moved. μ = 0 is SGD.
//
// For algorithms with StepRulesFit::may_follow_model.
// Memory: 2 floats a parameter (m, x⁻). No further bytes are sent. One thread at a time; allocates
// only in `resize`.
#pragma once

#include <sotto/kernels/vector.h>
#include <sotto/optim/step_rule.h>
#include <sotto/optim/step_rule_info.h>
#include <sotto/optim/step_rules/gradient_clip.h>
#include <sotto/optim/step_rules/learning_rate.h>

namespace sotto {

class QuasiGlobal final : public StepRule {
 public:
  static const StepRuleInfo kInfo;

  /// Use make_step_rule, which validates `options`.
  QuasiGlobal(const StepRuleOptions& options, const Ops& ops);

  std::string_view name() const override { return "quasi-global"; }
  void resize(const ParameterLayout& layout) override;
  Status direction(Round round, std::span<const float> x, std::span<const float> gradient,
                   std::span<float> d) override;
  bool separable() const override { return !clip_.clips(); }
  bool by_element() const override { return separable(); }
  void begin_parts(Round round) override;
  Status direction_part(std::size_t first, std::span<const float> x,
                        std::span<const float> gradient, std::span<float> d) override {
    return direction_of(1, first, x, gradient, d);
  }
  bool follows_model() const override { return true; }
  void set_learning_rate(double learning_rate) override { rate_.set(learning_rate); }
  void save(ByteBuffer& out) const override;
  Status load(ByteReader& in) override;

  /// m, as of the last direction.
  std::span<const float> momentum() const { return moment_; }

 private:
  /// d ← the direction of the gradient, all from element `first` of the model on.
  Status direction_of(float clip, std::size_t first, std::span<const float> x,
                      std::span<const float> gradient, std::span<float> d);

  const Ops& ops_;
  LearningRate rate_;
  GradientClip clip_;
  double momentum_;  // μ
  bool nesterov_;
  float weight_decay_;
  double round_rate_ = 0;  // γ of the last direction; 0 before the first
  double movement_ = 0;    // (1 − μ) / γ⁻, or 0 where x⁻ says nothing
  Vector moment_;          // m
  Vector before_;          // x⁻
};

}  // namespace sotto
