#include <sotto/study/json/config_parts.h>

#include <string>

namespace sotto::study {

Json task_config_json(std::string_view spec, const TaskOptions& task) {
  return {{"task", spec}, {"model", task.model}, {"batch", task.batch}};
}

Json step_rule_config_json(const StepRuleOptions& rule,
                           std::initializer_list<std::string_view> fields) {
  const Json all = {{"step_rule", rule.rule},
                    {"lr", rule.learning_rate},
                    {"momentum", rule.momentum},
                    {"nesterov", rule.nesterov},
                    {"weight_decay", rule.weight_decay},
                    {"beta1", rule.beta1},
                    {"beta2", rule.beta2},
                    {"epsilon", rule.epsilon},
                    {"bias_correction", bias_correction_name(rule.bias_correction)},
                    {"trust_coefficient", rule.trust_coefficient},
                    {"update_scale", update_scale_name(rule.update_scale)},
                    {"schedule", rule.schedule.spec()}};
  Json wanted = Json::object();
  for (const std::string_view field : fields) {
    const std::string name(field);
    wanted[name] = all.at(name);
  }
  return wanted;
}

Json outer_rule_config_json(const std::optional<StepRuleOptions>& outer) {
  return {{"outer_step_rule", outer ? Json(outer->rule) : Json()},
          {"outer_lr", outer ? Json(outer->learning_rate) : Json()},
          {"outer_momentum", outer ? outer->momentum : 0},
          {"outer_nesterov", outer && outer->nesterov}};
}

}  // namespace sotto::study
