#include <sotto/study/json/run_config.h>

#include <optional>
#include <string>

#include <sotto/study/json/config_parts.h>
#include <sotto/study/train/expert_plan.h>
#include <sotto/topology/node_groups.h>

namespace sotto::study {
namespace {

Json settings_json(const RunSettings& settings) {
  const TrainOptions& o = settings.options;
  const RunOptions& run = settings.run;
  const OptimizerOptions& used = run.optimizer;
  const bool experts = used.placed && used.placed->kind == PlacedModel::Kind::experts;
  Json config = task_config_json(settings.task_spec, settings.task);
  config.update(
      {{"gradient_time", o.gradient_time},
       {"batches", settings.task.batches.empty() ? Json(nullptr) : Json(settings.task.batches)},
       {"partition", settings.task.partition},
       {"experts_at", experts ? "nodes" : "everywhere"},
       {"expert_compressor", experts ? Json(expert_settings(o).compressor) : Json(nullptr)},
       {"expert_capacity", or_null(o.expert_capacity)},
       {"nodes", used.nodes},
       {"transport", used.transport},
       {"topology", used.topology},
       {"groups", used.groups.empty() ? Json(nullptr) : Json(NodeGroups(used.groups).text())},
       {"weighting", o.weighting.empty() ? "default" : o.weighting},
       {"join", o.join.empty() ? "none" : o.join},
       {"weight", o.weight.empty() ? "none" : o.weight},
       {"lazy", used.lazy},
       {"algorithm", algorithm_info(used.algorithm).name},
       {"hyperparameters", hyperparameters_json(used.algorithm)},
       {"compressor", used.compressor},
       {"byzantine", used.test.byzantine},
       {"attack", used.test.attack},
       {"allow_contract_violation", used.allow_contract_violation}});
  config.update(step_rule_config_json(
      used.step_rule,
      {"step_rule", "lr", "momentum", "nesterov", "weight_decay", "beta1", "beta2", "epsilon",
       "bias_correction", "trust_coefficient", "update_scale", "schedule"}));
  config.update({{"clip_norm", or_null(o.clip_norm)},
                 {"privacy", privacy_config_json(used.privacy)},
                 {"communication_interval", used.communication_interval}});
  config.update(outer_rule_config_json(used.outer_step_rule));
  config.update({{"outer_after_mixing", used.outer_after_mixing},
                 {"fragments", used.streaming.fragments},
                 {"sync_delay", used.streaming.delay},
                 {"sync_mix", sync_mix_text(used.streaming.mix)},
                 {"rounds", run.rounds},
                 {"eval_every", run.eval_every},
                 {"delayed_gradient", used.delayed_gradient},
                 {"overlap", used.overlap ? "on" : "off"},
                 {"codec_threads", used.codec_threads},
                 {"buckets", or_null(used.buckets)},
                 {"timeout", o.timeout_s},
                 {"init", o.init},
                 {"scaling", o.scaling},
                 {"own_sums", o.own_sums},
                 {"checkpoint", run.checkpoint},
                 {"checkpoint_every", run.checkpoint_every},
                 {"resume", run.resume},
                 {"bind", used.bind},
                 {"insecure", used.insecure},
                 {"streams", used.streams},
                 {"encrypted", used.security.has_value()},
                 {"peers", o.peers},
                 {"seed", used.seed}});
  return config;
}

/// The keys that configurations had before algorithms had hyperparameters; null where this
/// algorithm has none, or finds it itself.
void add_older_keys(const OptimizerOptions& used, Json& config) {
  for (const AlgorithmInfo& info : algorithms()) {
    for (const Hyperparameter& one : info.hyperparameters) {
      if (!one.setting.empty()) {
        config.emplace(one.setting, nullptr);
      }
    }
  }
  const AlgorithmSpec algorithm = parse_algorithm(used.algorithm);
  const Json values = hyperparameters_json(used.algorithm);
  for (const Hyperparameter& one : algorithm.info->hyperparameters) {
    if (!one.setting.empty()) {
      config[one.setting] = values.at(one.key);
    }
  }
}

}  // namespace

Json hyperparameters_json(std::string_view algorithm) {
  const AlgorithmSpec spec = parse_algorithm(algorithm);
  Json values = Json::object();
  for (const Hyperparameter& one : spec.info->hyperparameters) {
    const std::string_view text = spec.hyperparameters.text(one.key);
    const auto count = spec.hyperparameters.optional_count(one.key);
    const auto real = spec.hyperparameters.optional_real(one.key);
    values[one.key] = count            ? Json(*count)
                      : real           ? Json(*real)
                      : text == "auto" ? Json()
                                       : Json(text);
  }
  return values;
}

Json privacy_config_json(const std::optional<PrivacyOptions>& privacy) {
  if (!privacy) {
    return nullptr;
  }
  return {{"unit", privacy_unit_name(privacy->unit)},
          {"noise_multiplier", privacy->noise_multiplier},
          {"sampling_rate", privacy->sampling_rate},
          {"epsilon", or_null(privacy->epsilon)},
          {"delta", privacy->delta},
          {"before", told_before_text(privacy->before)},
          {"seed", or_null(privacy->test_seed)}};
}

Json train_config_json(const RunSettings& settings) {
  Json config = settings_json(settings);
  add_older_keys(settings.run.optimizer, config);
  if (settings.options.simulated) {
    config.erase("transport");  // nothing is carried: the scenario says what links do
  }
  return config;
}

}  // namespace sotto::study
