// Facts about a step rule, known before one is made. Each rule states its facts at the end of its
// source file. Pure functions; thread-safe.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <sotto/optim/step_rule.h>

namespace sotto {

/// One step rule, as help and completions show it.
struct StepRuleInfo {
  std::string_view name;       ///< "sgd", the value of StepRuleOptions::rule
  double learning_rate = 0.1;  ///< the default γ of a node's own steps
  /// The default γ where the rule steps along the movement of the rounds between two exchanges; 1
  /// takes the movement as it is.
  double outer_learning_rate = 1;
  /// The default momentum, of a rule that has one.
  double momentum = 0;
  /// Whether that is Nesterov's form by default.
  bool nesterov = false;
  /// The settings that the rule has and others lack, by the names of StepRuleOptions. The learning
  /// rate, weight decay, clipping and the schedule are every rule's.
  std::span<const std::string_view> settings = {};
  /// Whether StepRule::separable holds without clipping.
  bool separable = false;
  /// Whether StepRule::by_element holds without clipping.
  bool by_element = false;
  /// Rules for tensors that this one is not for, by selector, where a specification has none
  /// (step_rule_spec.h).
  std::string_view others = {};
  /// Plans try the rule beside the task's sgd, at its default rate (docs/planning.md).
  bool planned = false;
  /// Multiply-adds of a step on one tensor, of a rule that multiplies matrices, whose steps take
  /// time beside a gradient; null: it does not.
  double (*multiply_adds)(const ParameterBlock& tensor) = nullptr;
  /// Constructs the rule, without `others`, from options with values in their ranges; call
  /// make_step_rule instead. Throws Error for a setting that the rule cannot take.
  std::unique_ptr<StepRule> (*build)(const StepRuleOptions& options, const Ops& ops) = nullptr;

  /// Whether the rule has the setting of this name, "beta1".
  bool has(std::string_view setting) const;
};

/// The usual StepRuleInfo::build: T is made from the options.
template <typename T>
std::unique_ptr<StepRule> build_step_rule(const StepRuleOptions& options, const Ops& ops) {
  return std::make_unique<T>(options, ops);
}

/// All step rules, in the order in which they are listed.
std::span<const StepRuleInfo> step_rules();

/// The entry of a name; throws Error that lists the names, and names `field`, if there is none.
const StepRuleInfo& step_rule_info(std::string_view name, std::string_view field = "step_rule");

/// The names of the rules that have a setting; empty for one that every rule has.
std::vector<std::string> step_rules_with(std::string_view setting);

}  // namespace sotto
