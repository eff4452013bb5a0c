// A step rule's settings as the text in which nodes compare them. Pure function; thread-safe.
#pragma once

#include <sotto/optim/step_rule.h>
#include <sotto/trainers/settings/agreed_settings.h>

namespace sotto {

/// All settings of a step rule, by the names that users give them: "lr", "weight-decay". Equal
/// texts make equal steps.
AgreedSettings step_rule_settings(const StepRuleOptions& options);

/// Appends those of an outer step rule: "outer-lr" …
void add_outer_settings(const StepRuleOptions& outer, AgreedSettings& settings);

}  // namespace sotto
