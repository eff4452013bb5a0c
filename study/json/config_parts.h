// What the `config` of several kinds of runs has in common. Pure functions; thread-safe.
#pragma once

#include <initializer_list>
#include <optional>
#include <string_view>

#include <sotto/base/json.h>
#include <sotto/optim/step_rule.h>
#include <sotto/trainers/tasks/task_registry.h>

namespace sotto::study {

/// The task, its model and its batch. `spec` is the task's whole specification.
Json task_config_json(std::string_view spec, const TaskOptions& task);

/// These fields of a step rule as used, in this order: step_rule, lr, momentum, nesterov,
/// weight_decay, beta1, beta2, epsilon, bias_correction, trust_coefficient, update_scale, schedule.
Json step_rule_config_json(const StepRuleOptions& rule,
                           std::initializer_list<std::string_view> fields);

/// The fields of an outer step rule: outer_step_rule, outer_lr, null without one, outer_momentum
/// and outer_nesterov.
Json outer_rule_config_json(const std::optional<StepRuleOptions>& outer);

}  // namespace sotto::study
