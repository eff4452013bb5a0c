// SGD with momentum as a step rule.
//
// Source: torch.optim.SGD without dampening.
//
// Rule, g ← g + λ x first, μ the momentum:
//   v ← μ v + g;   d = γ v, or γ (g + μ v) in Nesterov's form
// Without momentum d = γ g.
//
// Memory: 1 float a parameter with momentum, else none. One thread at a time; allocates only in
// `resize`.
#pragma once

#include <algorithm>

#include <sotto/kernels/vector.h>
#include <sotto/optim/step_rule.h>
#include <sotto/optim/step_rule_info.h>
#include <sotto/optim/step_rules/gradient_clip.h>
#include <sotto/optim/step_rules/learning_rate.h>

namespace sotto {

class Sgd final : public StepRule {
 public:
  static const StepRuleInfo kInfo;

  /// Use make_step_rule, which validates `options`.
  Sgd(const StepRuleOptions& options, const Ops& ops);

  std::string_view name() const override { return "sgd"; }
  void resize(const ParameterLayout& layout) override;
  Status direction(Round round, std::span<const float> x, std::span<const float> gradient,
                   std::span<float> d) override;
  Result<Direction> direction_in(Round round, std::span<const float> x,
                                 std::span<const float> gradient, std::span<float> room) override;
  Status next_model(Round round, std::span<const float> x, std::span<const float> gradient,
                    std::span<float> next, const Ops& ops) override;
  bool stateless() const override { return momentum_ == 0 && !clip_.clips(); }
  bool separable() const override { return !clip_.clips(); }
  bool by_element() const override { return separable(); }
  void begin_parts(Round round) override { round_rate_ = static_cast<float>(rate_.at(round)); }
  Status direction_part(std::size_t first, std::span<const float> x,
                        std::span<const float> gradient, std::span<float> d) override {
    return direction_of(1, first, x, gradient, d);
  }
  void set_learning_rate(double learning_rate) override { rate_.set(learning_rate); }
  void save(ByteBuffer& out) const override;
  Status load(ByteReader& in) override;

  // For algorithms whose state goes with the rate (lead.h).

  /// γ of a round.
  double learning_rate(Round round) const { return rate_.at(round); }
  /// Whether gradients are scaled down to a norm.
  bool clips() const { return clip_.clips(); }
  /// The rule that an algorithm admitted as `sgd` was given.
  static Sgd& of(StepRule& rule);

 private:
  /// d ← the direction of the gradient, all from element `at` of the model on.
  Status direction_of(float clip, std::size_t at, std::span<const float> x,
                      std::span<const float> gradient, std::span<float> d);

  /// v ← μ v + g of the whole gradient, over `room`. Whether it is finite.
  bool take_moment(float clip, std::span<const float> x, std::span<const float> gradient,
                   std::span<float> room);

  /// Whether work(first, piece) is finite for all of d, a piece after the other, so that the memory
  /// is read and written once.
  template <typename Work>
  bool by_piece(std::span<float> d, const Work& work) const {
    bool finite = true;
    for (std::size_t first = 0; first < d.size(); first += ops_.piece()) {
      finite = work(first, d.subspan(first, std::min(ops_.piece(), d.size() - first))) && finite;
    }
    return finite;
  }

  /// The vector that γ scales to d: the gradient, the moment, or a sum of them in d.
  struct Unscaled {
    std::span<const float> values;
    bool finite;  ///< the moment is finite, if values are the moment
  };
  /// The unscaled direction of a piece, from element `first` of the model on.
  Unscaled unscaled(float clip, std::span<const float> x, std::span<const float> gradient,
                    std::size_t first, std::span<float> d);

  const Ops& ops_;
  LearningRate rate_;
  GradientClip clip_;
  float momentum_;
  bool nesterov_;
  float weight_decay_;
  float round_rate_ = 0;  ///< γ of the round
  Vector velocity_;
};

}  // namespace sotto
