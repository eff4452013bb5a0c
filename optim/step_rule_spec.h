// Specifications of step rules, with rules of their own for some tensors: "sgd", "muon; 1d=adamw",
// "muon; head.*=adamw:lr=0.003,beta2=0.95; 1d=adamw".
//
// Grammar, with blanks around `;` as one likes:
//   NAME; SELECTOR=NAME[:KEY=VALUE,…]; …
// base/tensor_selector.h has the selectors. The rule in front takes the settings of
// StepRuleOptions. Those behind selectors take them too, but for the learning rate, the momentum
// and its form, which are the defaults of their own; a KEY, a setting's name as StepRuleOptions or
// programs write it, gives another value. Clipping and the schedule are common to all.
//
// Plain values and pure functions; thread-safe.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <sotto/base/tensor_selector.h>
#include <sotto/optim/step_rule.h>
#include <sotto/optim/step_rule_info.h>

namespace sotto {

/// A setting that a specification gives, and its value: "beta2" and "0.95".
using StepRuleSetting = std::pair<std::string, std::string>;

/// The rule of a specification for some tensors.
struct SelectedStepRule {
  const StepRuleInfo* info = nullptr;
  /// Settings given behind its name, as the rule reads them.
  std::vector<StepRuleSetting> settings;

  /// The options of this rule, where `common` are those of the rule in front.
  StepRuleOptions options(const StepRuleOptions& common) const;
};

/// A specification that was read.
struct StepRuleSpec {
  const StepRuleInfo* info = nullptr;      ///< facts of the rule in front
  std::vector<SelectedSpec> selectors;     ///< selectors, with the text of their rules
  std::vector<SelectedStepRule> selected;  ///< rules by selector
  bool chosen = false;  ///< the specification names the selectors, not the rule in front

  /// One text for equal specifications.
  std::string text() const;
  /// Whether a rule of it has the setting of this name, "beta1".
  bool has(std::string_view setting) const;
  /// The names of its rules, the one in front first, each once.
  std::vector<std::string> names() const;
};

/// Multiply-adds that the rules of a specification need for a step on each tensor of a whole model;
/// 0 where the tensor's rule multiplies no matrices. Throws Error for a selector that selects none
/// of them.
std::vector<double> multiply_adds_of_step(const StepRuleSpec& spec, const ParameterLayout& layout);

/// Reads a specification. Throws Error, which names `field`, for a rule that does not exist, a
/// setting that it lacks, a value that is none, and where tensors are selected for a rule that
/// takes the model as a whole.
StepRuleSpec parse_step_rule(std::string_view spec, std::string_view field = "step_rule");

}  // namespace sotto
