#include <sotto/study/internal/plan_json.h>

#include <optional>
#include <string>

namespace sotto::study {
namespace {

Json settings_json(const RunSettings& settings) {
  const TrainOptions& o = settings.options;
  const RunOptions& run = settings.run;
  const OptimizerOptions& used = run.optimizer;
  const TaskOptions& task = settings.task;
  const auto& outer = used.outer_step_rule;
  const auto optional = [](const auto& value) { return value ? Json(*value) : Json(); };
  return {{"task", settings.task_spec},
          {"model", task.model},
          {"batch", task.batch},
          {"gradient_time", o.gradient_time},
          {"partition", task.partition},
          {"nodes", used.nodes},
          {"transport", used.transport},
          {"topology", used.topology},
          {"weighting", o.weighting.empty() ? "default" : o.weighting},
          {"join", o.join.empty() ? "none" : o.join},
          {"weight", o.weight.empty() ? "none" : o.weight},
          {"lazy", used.lazy},
          {"algorithm", used.algorithm},
          {"compressor", used.compressor},
          {"consensus_stepsize", optional(used.consensus_stepsize)},
          {"extrapolation_clock", optional(used.extrapolation_clock)},
          {"freeze_step", optional(used.freeze_step)},
          {"local_step_limit", optional(used.local_step_limit)},
          {"rule", used.rule},
          {"byzantine", used.byzantine},
          {"attack", used.attack},
          {"allow_contract_violation", used.allow_contract_violation},
          {"step_rule", used.step_rule.rule},
          {"lr", used.step_rule.learning_rate},
          {"momentum", used.step_rule.momentum},
          {"nesterov", used.step_rule.nesterov},
          {"weight_decay", used.step_rule.weight_decay},
          {"beta1", used.step_rule.beta1},
          {"beta2", used.step_rule.beta2},
          {"epsilon", used.step_rule.epsilon},
          {"bias_correction", bias_correction_name(used.step_rule.bias_correction)},
          {"trust_coefficient", used.step_rule.trust_coefficient},
          {"clip_norm", optional(o.clip_norm)},
          {"schedule", used.step_rule.schedule.spec()},
          {"privacy", privacy_config_json(used.privacy)},
          {"communication_interval", used.communication_interval},
          {"outer_step_rule", optional(outer ? std::optional(outer->rule) : std::nullopt)},
          {"outer_lr", optional(outer ? std::optional(outer->learning_rate) : std::nullopt)},
          {"outer_momentum", o.outer_momentum},
          {"outer_nesterov", o.outer_nesterov},
          {"rounds", run.rounds},
          {"eval_every", run.eval_every},
          {"delayed_gradient", used.delayed_gradient},
          {"overlap", used.overlap ? "on" : "off"},
          {"codec_threads", used.codec_threads},
          {"buckets", optional(used.buckets)},
          {"timeout", o.timeout_s},
          {"init", o.init},
          {"checkpoint", run.checkpoint},
          {"checkpoint_every", run.checkpoint_every},
          {"resume", run.resume},
          {"bind", used.bind},
          {"insecure", used.insecure},
          {"encrypted", used.security.has_value()},
          {"peers", o.peers},
          {"seed", used.seed}};
}

}  // namespace

Json privacy_config_json(const std::optional<PrivacyOptions>& privacy) {
  if (!privacy) {
    return nullptr;
  }
  return {{"unit", privacy_unit_name(privacy->unit)},
          {"noise_multiplier", privacy->noise_multiplier},
          {"sampling_rate", privacy->sampling_rate},
          {"epsilon", privacy->epsilon ? Json(*privacy->epsilon) : Json()},
          {"delta", privacy->delta},
          {"seed", privacy->test_seed ? Json(*privacy->test_seed) : Json()}};
}

Json train_config_json(const RunSettings& settings) {
  Json config = settings_json(settings);
  if (settings.options.simulated) {
    config.erase("transport");  // nothing is carried: the scenario says what links do
  }
  return config;
}

}  // namespace sotto::study
