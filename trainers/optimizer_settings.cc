#include <sotto/trainers/optimizer_settings.h>

#include <chrono>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/base/number.h>
#include <sotto/comm/store.h>
#include <sotto/comm/transport.h>
#include <sotto/optim/registry.h>

namespace sotto {
namespace {

/// The step rule that the algorithm is built on, else sgd.
std::string needed_step_rule(std::string_view algorithm) {
  const std::string_view needed = algorithm_info(algorithm).step_rule;
  return std::string(needed.empty() ? "sgd" : needed);
}

double default_learning_rate(std::string_view rule) {
  if (rule == "lars") {
    return 1;
  }
  return rule == "sgd" ? 0.1 : 0.001;
}

std::optional<Round> parse_freeze_step(std::string_view text) {
  if (text == "auto") {
    return std::nullopt;
  }
  const auto rounds = parse_number<Round>(text, 0, kMostCounted);
  if (!rounds) {
    refuse("--freeze-step", text,
           fmt::format("it is a number of rounds from 0 to {}, or auto", kMostCounted));
  }
  return rounds;
}

std::optional<StepRuleOptions> outer_step_rule_of(const OptimizerSettings& o) {
  if (!has_local_steps(o)) {
    return std::nullopt;
  }
  StepRuleOptions rule;
  rule.rule = o.outer_step_rule.empty() ? needed_step_rule(o.algorithm) : o.outer_step_rule;
  rule.learning_rate =
      o.outer_lr.value_or(rule.rule == "sgd" ? 1 : default_learning_rate(rule.rule));
  rule.momentum = o.outer_momentum;
  rule.nesterov = o.outer_nesterov;
  return rule;
}

bool parse_switch(std::string_view field, std::string_view value) {
  if (value != "on" && value != "off") {
    refuse(field, value, "it is on or off");
  }
  return value == "on";
}

std::chrono::milliseconds parse_timeout(double seconds) {
  if (!(seconds >= 0.001 && seconds <= 1e6)) {
    refuse("--timeout", fmt::to_string(seconds), "it must be 0.001 to 1000000 seconds");
  }
  return std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1000));
}

void check_step_rule(const OptimizerSettings& o) {
  const std::string rule = step_rule_name(o);
  make_step_rule({.rule = rule}, host_ops());  // refuses a name that none has
  const auto belongs_to = [&](const char* option, bool given, std::string_view owners) {
    if (given && owners.find(rule) == std::string_view::npos) {
      throw Error(
          fmt::format("{}: the step rule is {}, which has none; leave it out, or take "
                      "--step-rule {}",
                      option, rule, owners));
    }
  };
  constexpr std::string_view kWithMoments = "adam, adamw or lamb";
  belongs_to("--nesterov", o.nesterov, "sgd");
  belongs_to("--beta1", o.beta1.has_value(), kWithMoments);
  belongs_to("--beta2", o.beta2.has_value(), kWithMoments);
  belongs_to("--epsilon", o.epsilon.has_value(), kWithMoments);
  belongs_to("--bias-correction", o.bias_correction != OptimizerSettings().bias_correction,
             "adam or adamw");
  belongs_to("--trust-coefficient", o.trust_coefficient.has_value(), "lars");
}

void check_freeze_step(const OptimizerSettings& o) {
  if (o.freeze_step == "auto" && algorithm_info(o.algorithm).freezing == Freezing::given) {
    throw Error(
        "--freeze-step: auto: only onebit-adam finds it by itself; give --freeze-step ROUNDS, "
        "e.g. 15 % of the rounds");
  }
}

void check_privacy_settings(const OptimizerSettings& o) {
  if (wants_privacy(o)) {
    if (!o.clip_norm) {
      throw Error(
          fmt::format("{}: noise hides only what is bounded: give --clip-norm C too, e.g. 1",
                      o.noise_multiplier ? "--noise-multiplier" : "--privacy-epsilon"));
    }
    if (!o.privacy_unit.empty()) {
      (void)parse_privacy_unit(o.privacy_unit);
    }
    return;
  }
  const auto idle = [](const char* option, bool given) {
    if (given) {
      throw Error(fmt::format(
          "{}: nothing is hidden without --noise-multiplier SIGMA or --privacy-epsilon EPSILON",
          option));
    }
  };
  idle("--privacy-delta", o.privacy_delta.has_value());
  idle("--privacy-unit", !o.privacy_unit.empty());
  idle("--privacy-seed", o.privacy_seed.has_value());
}

}  // namespace

bool has_local_steps(const OptimizerSettings& o) {
  return o.communication_interval > 1 || !o.outer_step_rule.empty() || o.outer_lr ||
         o.outer_momentum != 0 || o.outer_nesterov;
}

bool wants_privacy(const OptimizerSettings& o) { return o.noise_multiplier || o.privacy_epsilon; }

std::string step_rule_name(const OptimizerSettings& o) {
  if (!o.step_rule.empty()) {
    return o.step_rule;
  }
  return has_local_steps(o) ? "sgd" : needed_step_rule(o.algorithm);
}

void check_settings(const OptimizerSettings& settings) {
  check_step_rule(settings);
  check_freeze_step(settings);
  check_privacy_settings(settings);
}

StepRuleOptions step_rule_of(const OptimizerSettings& o, Round steps) {
  StepRuleOptions rule;
  rule.rule = step_rule_name(o);
  rule.learning_rate = o.lr.value_or(default_learning_rate(rule.rule));
  rule.momentum = o.momentum;
  rule.nesterov = o.nesterov;
  rule.weight_decay = o.weight_decay;
  rule.beta1 = o.beta1.value_or(rule.beta1);
  rule.beta2 = o.beta2.value_or(rule.beta2);
  rule.epsilon = o.epsilon.value_or(rule.epsilon);
  rule.bias_correction = parse_bias_correction(o.bias_correction);
  rule.trust_coefficient = o.trust_coefficient.value_or(rule.trust_coefficient);
  if (!wants_privacy(o)) {
    rule.clip_norm = o.clip_norm.value_or(rule.clip_norm);
  }
  rule.schedule = parse_schedule(o.schedule, steps);
  return rule;
}

std::string default_transport(bool launched, bool secured) {
  for (const TransportInfo& info : transports()) {
    if (info.available && info.processes == launched && (info.encrypts || !secured)) {
      return std::string(info.name);
    }
  }
  throw Error("--transport: this build has none for launched jobs (it needs Gloo or ZeroMQ)");
}

double parse_weight(std::string_view text) {
  if (text == kWeightByExamples) {
    refuse("--weight", text,
           "how many examples this node has only its own program knows: give their number");
  }
  const auto weight = parse_number<double>(text);
  if (!weight) {
    refuse("--weight", excerpt(text), "it must be a number, e.g. of examples");
  }
  return *weight;
}

OptimizerOptions options_of(const OptimizerSettings& o, Round steps) {
  OptimizerOptions made;
  made.algorithm = o.algorithm;
  made.compressor = o.compressor;
  made.topology = o.topology;
  if (!o.weighting.empty()) {
    made.weighting = parse_weighting(o.weighting);
  }
  made.lazy = o.lazy;
  made.step_rule = step_rule_of(o, steps);
  made.communication_interval = o.communication_interval;
  made.outer_step_rule = outer_step_rule_of(o);
  made.consensus_stepsize = o.consensus_stepsize;
  made.extrapolation_clock = o.extrapolation_clock;
  made.freeze_step = parse_freeze_step(o.freeze_step);
  made.local_step_limit = o.local_step_limit;
  made.rule = o.rule;
  made.attack = o.attack;
  made.allow_contract_violation = o.allow_contract_violation;
  made.transport = o.transport;
  made.nodes = o.nodes.value_or(0);
  if (!o.rendezvous.empty()) {
    check_store_url(o.rendezvous);
  }
  made.rendezvous = o.rendezvous;
  made.bind = o.bind;
  made.insecure = o.insecure;
  made.delayed_gradient = o.delayed_gradient;
  made.overlap = parse_switch("--overlap", o.overlap);
  made.codec_threads = o.codec_threads;
  made.buckets = o.buckets;
  made.timeout = parse_timeout(o.timeout_s);
  made.join = o.join.empty() ? Join::none : parse_join(o.join);
  if (!o.weight.empty()) {
    made.weight = parse_weight(o.weight);
  }
  return made;
}

}  // namespace sotto
