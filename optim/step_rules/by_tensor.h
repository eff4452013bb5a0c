// Step rules by tensor: Muon for the matrices, say, and AdamW for all else.
//
// Rule: of a specification "NAME; SELECTOR=NAME[:KEY=VALUE,…]; …" (step_rule_spec.h) the first
// whose selector fits a tensor makes that tensor's direction, else the rule in front. Each rule has
// the moments of its own tensors. Clipping comes before all, by the norm of the whole gradient. A
// learning rate that is changed during a run is the rule's in front; those of the others change in
// proportion, or stay where it began as 0.
//
// Where a node steps some of a model's tensors alone, selectors are judged on the whole model:
// `ends` are its ends, and a name may be that of a tensor elsewhere.
//
// Assumes rules that go by tensors or elements (StepRuleInfo::separable).
// Memory: that of the rules, for their tensors. One thread at a time; allocates only in `resize`.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <sotto/optim/step_rule.h>
#include <sotto/optim/step_rule_spec.h>
#include <sotto/optim/step_rules/gradient_clip.h>

namespace sotto {

/// What the rules of a specification are for in a part of a model.
struct RulesOfPart {
  std::vector<std::size_t> of_tensors;  ///< number of the rule of each of its tensors
  std::vector<bool> elsewhere;          ///< by rule: other tensors of the model have it
};

/// Makes the direction of each tensor with the rule that is for it.
class RulesByTensor final : public StepRule {
 public:
  /// Use make_step_rule, which reads `spec` and validates `options`.
  RulesByTensor(StepRuleSpec spec, const StepRuleOptions& options, const Ops& ops);
  /// Likewise, for the tensors of a part of a model (make_step_rule_of_part).
  RulesByTensor(StepRuleSpec spec, const StepRuleOptions& options, const Ops& ops,
                RulesOfPart part);

  std::string_view name() const override { return name_; }
  /// Throws Error for a rule that cannot be for its tensors, and a selector that fits none.
  void resize(const ParameterLayout& layout) override;
  Status direction(Round round, std::span<const float> x, std::span<const float> gradient,
                   std::span<float> d) override;
  bool separable() const override { return !clip_.clips(); }
  bool takes_any_part() const override;
  void begin_parts(Round round) override;
  Status direction_part(std::size_t first, std::span<const float> x,
                        std::span<const float> gradient, std::span<float> d) override;
  bool follows_model() const override;
  void set_learning_rate(double learning_rate) override;
  void save(ByteBuffer& out) const override;
  Status load(ByteReader& in) override;

 private:
  /// Tensors that follow each other and have one rule.
  struct Run {
    std::size_t offset = 0;  ///< offset in the model
    std::size_t size = 0;
    std::size_t rule = 0;
    std::size_t own_offset = 0;  ///< offset among the rule's tensors
  };

  StepRuleSpec spec_;
  std::optional<RulesOfPart> part_;  ///< none: the tensors are a whole model
  std::string name_;
  GradientClip clip_;
  double base_rate_;           ///< base rate of the rule in front
  std::vector<double> rates_;  ///< learning rates by rule, while the rule in front has base_rate_
  std::vector<std::unique_ptr<StepRule>> rules_;  ///< rules by selector, and the one in front
  std::vector<Run> runs_;
};

/// Makes the rule that `options` name for some tensors of a model, of which it steps each as it
/// would all of them together; `tensors` are their numbers in `whole`, ascending. Its layout must
/// be theirs, in this order. Throws Error as make_step_rule, and for a selector that fits no tensor
/// of `whole`.
std::unique_ptr<StepRule> make_step_rule_of_part(const StepRuleOptions& options,
                                                 const ParameterLayout& whole,
                                                 std::span<const std::size_t> tensors,
                                                 const Ops& ops = host_ops());

}  // namespace sotto
