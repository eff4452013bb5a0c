#include <sotto/trainers/settings/step_rule_settings.h>

#include <utility>

#include <fmt/format.h>

namespace sotto {
namespace {

/// A cosine's shape depends on the run's length.
std::string schedule_text(const Schedule& schedule) {
  return schedule.shape == Schedule::Shape::cosine
             ? fmt::format("{} of {} steps", schedule.spec(), schedule.total)
             : schedule.spec();
}

}  // namespace

AgreedSettings step_rule_settings(const StepRuleOptions& options) {
  // Names all members, so that none that is added is left out.
  const auto& [rule, learning_rate, momentum, nesterov, weight_decay, beta1, beta2, epsilon,
               bias_correction, trust_coefficient, update_scale, clip_norm, schedule] = options;
  return {{"step-rule", rule},
          {"lr", fmt::to_string(learning_rate)},
          {"momentum", fmt::to_string(momentum)},
          {"nesterov", fmt::to_string(nesterov)},
          {"weight-decay", fmt::to_string(weight_decay)},
          {"beta1", fmt::to_string(beta1)},
          {"beta2", fmt::to_string(beta2)},
          {"epsilon", fmt::to_string(epsilon)},
          {"bias-correction", std::string(bias_correction_name(bias_correction))},
          {"trust-coefficient", fmt::to_string(trust_coefficient)},
          {"update-scale", std::string(update_scale_name(update_scale))},
          {"clip-norm", fmt::to_string(clip_norm)},
          {"schedule", schedule_text(schedule)}};
}

void add_outer_settings(const StepRuleOptions& outer, AgreedSettings& settings) {
  for (auto& [name, value] : step_rule_settings(outer)) {
    settings.emplace_back("outer-" + name, std::move(value));
  }
}

}  // namespace sotto
