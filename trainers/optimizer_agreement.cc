// What the nodes of a run must agree on, as text.
#include <sotto/trainers/optimizer.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <sotto/base/digest.h>
#include <sotto/base/nearest.h>
#include <sotto/trainers/saved_model.h>

namespace sotto {
namespace {

std::string text_digest(const std::string& text) {
  return sha256_hex(std::as_bytes(std::span(text))).substr(0, 16);
}

/// A fingerprint of all weights: a graph from a file may differ from host to host.
std::string graph_digest(const Topology& topology) {
  ByteBuffer bytes;
  for (Round round = 0; round < topology.period(); ++round) {
    for (Rank node = 0; node < topology.nodes(); ++node) {
      bytes.write(topology.self_weight(node, round));
      for (const Edge& edge : topology.in_edges(node, round)) {
        bytes.write(edge.peer);
        bytes.write(edge.weight);
      }
    }
  }
  return sha256_hex(bytes.bytes()).substr(0, 16);
}

std::string outer_rule_text(const OptimizerOptions& options) {
  if (!options.outer_step_rule) {
    return "default";
  }
  const StepRuleOptions& rule = *options.outer_step_rule;
  return fmt::format(
      "{},lr={},momentum={},nesterov={},decay={},betas={},{},{},bias={},trust={},clip={},"
      "schedule={}",
      rule.rule, rule.learning_rate, rule.momentum, rule.nesterov, rule.weight_decay, rule.beta1,
      rule.beta2, rule.epsilon, bias_correction_name(rule.bias_correction), rule.trust_coefficient,
      rule.clip_norm, rule.schedule.spec());
}

/// What a promise of privacy depends on, and the nodes' common end.
void add_privacy(const PrivacyOptions& privacy, Settings& settings) {
  settings.insert(
      settings.end(),
      {{"privacy-unit", std::string(privacy_unit_name(privacy.unit))},
       {"privacy-clip-norm", fmt::format("{}", privacy.clip_norm)},
       {"noise-multiplier", fmt::format("{}", privacy.noise_multiplier)},
       {"sampling-rate", fmt::format("{}", privacy.sampling_rate)},
       {"privacy-batch", fmt::format("{}", privacy.batch)},
       {"privacy-epsilon", privacy.epsilon ? fmt::format("{}", *privacy.epsilon) : "unlimited"},
       {"privacy-delta", fmt::format("{}", privacy.delta)}});
}

}  // namespace

std::string_view join_name(Join join) {
  switch (join) {
    case Join::none:
      return "none";
    case Join::stop:
      return "stop";
    case Join::zeros:
      return "zeros";
  }
  return "unknown";
}

Join parse_join(std::string_view name) {
  for (const Join join : {Join::stop, Join::zeros}) {
    if (join_name(join) == name) {
      return join;
    }
  }
  refuse_unknown("join", name, {"stop", "zeros"});
}

std::string Optimizer::agreement() const {
  const StepRuleOptions& rule = options_.step_rule;
  Settings settings = {
      {"nodes", fmt::format("{}", options_.nodes)},
      {"dimension", fmt::format("{}", parameters_.size())},
      {"layout", layout_digest(layout_)},
      {"algorithm", options_.algorithm},
      {"compressor", options_.compressor},
      {"topology", options_.topology},
      {"weights", graph_digest(*topology_)},
      {"step-rule", rule.rule},
      {"lr", fmt::format("{}", rule.learning_rate)},
      {"momentum", fmt::format("{}", rule.momentum)},
      {"nesterov", fmt::format("{}", rule.nesterov)},
      {"weight-decay", fmt::format("{}", rule.weight_decay)},
      {"betas", fmt::format("{},{},{}", rule.beta1, rule.beta2, rule.epsilon)},
      {"trust-coefficient", fmt::format("{}", rule.trust_coefficient)},
      {"bias-correction", std::string(bias_correction_name(rule.bias_correction))},
      {"clip-norm", fmt::format("{}", rule.clip_norm)},
      {"schedule", rule.schedule.spec()},
      {"communication-interval", fmt::to_string(options_.communication_interval)},
      {"outer-step-rule", outer_rule_text(options_)},
      {"consensus-stepsize",
       options_.consensus_stepsize ? fmt::format("{}", *options_.consensus_stepsize) : "default"},
      {"extrapolation-clock",
       options_.extrapolation_clock ? fmt::to_string(*options_.extrapolation_clock) : "default"},
      {"freeze-step", options_.freeze_step ? fmt::format("{}", *options_.freeze_step) : "auto"},
      {"local-step-limit",
       options_.local_step_limit ? fmt::to_string(*options_.local_step_limit) : "default"},
      {"rule", options_.rule.empty() ? "none" : options_.rule},
      {"byzantine", fmt::format("{}", fmt::join(options_.byzantine, ","))},
      {"attack", options_.attack.empty() ? "none" : options_.attack},
      {"delayed-gradient", options_.delayed_gradient ? "true" : "false"},
      {"buckets", fmt::to_string(options_.buckets.value_or(1))},
      {"seed", fmt::format("{}", options_.seed)},
  };
  if (options_.weight) {
    settings.emplace_back("weighted", "true");
  }
  if (options_.join != Join::none) {
    settings.emplace_back("join", std::string(join_name(options_.join)));
  }
  if (options_.privacy) {
    add_privacy(*options_.privacy, settings);
  }
  settings.insert(settings.end(), options_.job.begin(), options_.job.end());
  return settings_text(settings);
}

std::uint64_t Optimizer::run_id() const {
  return std::stoull(text_digest(agreement()), nullptr, 16);
}

}  // namespace sotto
