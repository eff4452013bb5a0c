#include <sotto/trainers/settings/optimizer_settings.h>

#include <algorithm>
#include <chrono>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <sotto/base/durable_file.h>
#include <sotto/base/error.h>
#include <sotto/base/names.h>
#include <sotto/base/number.h>
#include <sotto/comm/stores.h>
#include <sotto/comm/transport.h>
#include <sotto/optim/registry.h>
#include <sotto/optim/step_rule_spec.h>
#include <sotto/topology/node_groups.h>
#include <sotto/trainers/settings/time_limit.h>

namespace sotto {
namespace {

/// The rule that `quasi_global_momentum` names (optim/step_rules/quasi_global.h).
constexpr const char* kQuasiGlobal = "quasi-global";

/// The step rule that the algorithm is built on, else sgd.
std::string needed_step_rule(std::string_view algorithm) {
  const std::string_view needed = algorithm_info(algorithm).step_rules.only;
  return std::string(needed.empty() ? "sgd" : needed);
}

/// The default γ of the rule that the algorithm steps with: its own, or what is usual of the rule.
double default_rate(std::string_view algorithm, double of_rule) {
  const double own = algorithm_info(algorithm).learning_rate;
  return own > 0 ? own : of_rule;
}

const Hyperparameter* hyperparameter_of(const AlgorithmInfo& info, std::string_view setting) {
  const auto found = std::ranges::find(info.hyperparameters, setting, &Hyperparameter::setting);
  return found == info.hyperparameters.end() ? nullptr : &*found;
}

/// The algorithms with a hyperparameter that this setting gives.
std::vector<std::string_view> owners_of(std::string_view setting) {
  std::vector<std::string_view> names;
  for (const AlgorithmInfo& info : algorithms()) {
    if (hyperparameter_of(info, setting) != nullptr) {
      names.push_back(info.name);
    }
  }
  return names;
}

bool parse_switch(std::string_view field, std::string_view value) {
  if (value != "on" && value != "off") {
    refuse(field, value, "it is on or off");
  }
  return value == "on";
}

std::optional<double> momentum_of(const OptimizerSettings& o) {
  return o.quasi_global_momentum ? o.quasi_global_momentum : o.momentum;
}

void check_step_rule(const OptimizerSettings& o) {
  if (o.quasi_global_momentum) {
    const bool another = !o.step_rule.empty() && o.step_rule != kQuasiGlobal;
    if (another || o.momentum) {
      throw Error("quasi_global_momentum", "it is step rule and momentum in one; leave out " +
                                               mention(another ? "step_rule" : "momentum"));
    }
  }
  const StepRuleSpec rule = parse_step_rule(step_rule_name(o));
  // Refuses a momentum that the rule cannot take, in the rule's own words.
  make_step_rule({.rule = std::string(rule.info->name), .momentum = momentum_of(o).value_or(0)},
                 host_ops());
  OptimizerSettings given = o;
  if (given.momentum == 0) {
    given.momentum.reset();  // rules without a momentum have that
  }
  if (given.nesterov == false) {
    given.nesterov.reset();
  }
  OptimizerSettings defaults;
  const SettingGroup settings = step_settings(given);
  const SettingGroup untouched = step_settings(defaults);
  for (std::size_t i = 0; i < settings.settings.size(); ++i) {
    const std::string field = field_of(settings.settings[i]);
    const auto owners = step_rules_with(field);
    const bool of_front = field == "momentum" || field == "nesterov";  // others have their own
    if (!owners.empty() && !(of_front ? rule.info->has(field) : rule.has(field)) &&
        differs(settings.settings[i], untouched.settings[i])) {
      throw Error(field, fmt::format("the step rule is {}, which has none; leave it out, or take ",
                                     rule.info->name) +
                             mention("step_rule") + " " + word_list(owners));
    }
  }
}

void check_privacy_settings(const OptimizerSettings& o) {
  if (wants_privacy(o)) {
    if (!o.clip_norm) {
      throw Error(
          o.noise_multiplier ? "noise_multiplier" : "privacy_epsilon",
          "noise hides only what is bounded: give " + mention("clip_norm") + " too, e.g. 1");
    }
    if (!o.privacy_unit.empty()) {
      (void)parse_privacy_unit(o.privacy_unit);
    }
    return;
  }
  const auto idle = [](const char* setting, bool given) {
    if (given) {
      throw Error(setting, "nothing is hidden without " + mention("noise_multiplier") + " or " +
                               mention("privacy_epsilon"));
    }
  };
  idle("privacy_delta", o.privacy_delta.has_value());
  idle("privacy_unit", !o.privacy_unit.empty());
  idle("privacy_seed", o.privacy_seed.has_value());
}

}  // namespace

bool has_outer_rule(const OptimizerSettings& o) {
  return !o.outer_step_rule.empty() || o.outer_lr || o.outer_momentum.value_or(0) != 0 ||
         o.outer_nesterov || o.outer_after_mixing;
}

bool has_local_steps(const OptimizerSettings& o) {
  return o.communication_interval > 1 || has_outer_rule(o);
}

bool wants_privacy(const OptimizerSettings& o) { return o.noise_multiplier || o.privacy_epsilon; }

AlgorithmSpec algorithm_of(const OptimizerSettings& settings) {
  AlgorithmSpec algorithm = parse_algorithm(settings.algorithm);
  OptimizerSettings copy = settings;
  for (const SettingGroup& group : settings_of(copy)) {
    for (const Setting& setting : group.settings) {
      const std::string name = field_of(setting);
      const auto owners = owners_of(name);
      const std::string value =
          owners.empty() ? std::string() : *std::get<std::string*>(setting.value);
      if (value.empty()) {
        continue;
      }
      if (const Hyperparameter* own = hyperparameter_of(*algorithm.info, name)) {
        algorithm.hyperparameters.set(own->key, value, name);
      } else if (value != "auto") {
        const bool undefended = algorithm_info(owners.front()).robust &&
                                algorithm.info->graph == GraphNeed::column_stochastic;
        refuse(name, value,
               fmt::format("{} has none{}; leave it out, it is for {}", algorithm.info->name,
                           undefended ? ", as on directed graphs none is proven against Byzantine "
                                        "nodes"
                                      : "",
                           fmt::join(owners, ", ")));
      }
    }
  }
  return algorithm;
}

std::string step_rule_name(const OptimizerSettings& o) {
  if (o.quasi_global_momentum) {
    return kQuasiGlobal;
  }
  if (!o.step_rule.empty()) {
    return o.step_rule;
  }
  return has_local_steps(o) ? "sgd" : needed_step_rule(o.algorithm);
}

void check_settings(const OptimizerSettings& settings) {
  check_step_rule(settings);
  static_cast<void>(algorithm_of(settings));
  check_privacy_settings(settings);
}

StepRuleOptions step_rule_of(const OptimizerSettings& o, Round steps) {
  StepRuleOptions rule;
  const StepRuleSpec spec = parse_step_rule(step_rule_name(o));
  const StepRuleInfo& info = *spec.info;
  rule.rule = spec.text();
  rule.learning_rate = o.lr.value_or(
      has_local_steps(o) ? info.learning_rate : default_rate(o.algorithm, info.learning_rate));
  rule.momentum = momentum_of(o).value_or(info.momentum);
  rule.nesterov = o.nesterov.value_or(info.nesterov && rule.momentum != 0);
  rule.weight_decay = o.weight_decay;
  rule.beta1 = o.beta1.value_or(rule.beta1);
  rule.beta2 = o.beta2.value_or(rule.beta2);
  rule.epsilon = o.epsilon.value_or(rule.epsilon);
  rule.bias_correction = parse_bias_correction(o.bias_correction);
  rule.trust_coefficient = o.trust_coefficient.value_or(rule.trust_coefficient);
  rule.update_scale = parse_update_scale(o.update_scale);
  if (!wants_privacy(o)) {
    rule.clip_norm = o.clip_norm.value_or(rule.clip_norm);
  }
  if (steps == 0 && family_name(o.schedule) == "cosine") {
    refuse("schedule", o.schedule, "it needs an end: give " + mention("rounds"));
  }
  rule.schedule = parse_schedule(o.schedule, steps);
  return rule;
}

std::string default_transport(bool launched, bool secured, bool streams) {
  for (const TransportInfo& info : transports()) {
    if (info.available && info.processes == launched && (info.encrypts || !secured) &&
        (info.streams || !streams)) {
      return std::string(info.name);
    }
  }
  throw Error("transport", "this build has none for launched jobs (it needs Gloo or ZeroMQ)");
}

double parse_weight(std::string_view text) {
  if (text == kWeightByExamples) {
    refuse("weight", text,
           "how many examples this node has only its own program knows: give their number");
  }
  const auto weight = parse_number<double>(text);
  if (!weight) {
    refuse("weight", excerpt(text), "it must be a number, e.g. of examples");
  }
  return *weight;
}

std::vector<std::vector<Rank>> read_groups(const std::string& path) {
  const bool ranks_alone = path.find_first_of("0123456789") != std::string::npos &&
                           path.find_first_not_of("0123456789-, \t") == std::string::npos;
  if (ranks_alone || path.find(';') != std::string::npos) {
    std::string lines = path;
    std::ranges::replace(lines, ';', '\n');
    return parse_groups(lines);
  }
  constexpr std::size_t kMostBytes = std::size_t{16} << 20U;
  const auto content = read_file(path, kMostBytes);
  if (!content.ok()) {
    refuse("groups", path, content.status().message());
  }
  const std::span<const std::byte> bytes = *content;
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): text is bytes
  auto groups = parse_groups({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  if (groups.empty()) {
    refuse("groups", path, "it names no nodes; give each group a line of ranks, such as 0-3");
  }
  return groups;
}

std::optional<StepRuleOptions> outer_step_rule_of(const OptimizerSettings& o) {
  if (!has_local_steps(o)) {
    return std::nullopt;
  }
  StepRuleOptions rule;
  const StepRuleSpec spec =
      parse_step_rule(o.outer_step_rule.empty() ? needed_step_rule(o.algorithm) : o.outer_step_rule,
                      "outer_step_rule");
  rule.rule = spec.text();
  rule.learning_rate =
      o.outer_lr.value_or(default_rate(o.algorithm, spec.info->outer_learning_rate));
  rule.momentum = o.outer_momentum.value_or(spec.info->momentum);
  rule.nesterov = o.outer_nesterov;
  return rule;
}

OptimizerOptions options_of(const OptimizerSettings& o, Round steps) {
  OptimizerOptions made;
  made.algorithm = algorithm_of(o).text();
  made.compressor = o.compressor;
  made.topology = o.topology;
  if (!o.groups.empty()) {
    made.groups = read_groups(o.groups);
  }
  if (!o.weighting.empty()) {
    made.weighting = parse_weighting(o.weighting);
  }
  made.lazy = o.lazy;
  made.step_rule = step_rule_of(o, steps);
  made.communication_interval = o.communication_interval;
  made.outer_step_rule = outer_step_rule_of(o);
  made.outer_after_mixing = o.outer_after_mixing;
  made.streaming = {.fragments = o.fragments.value_or(1),
                    .delay = o.sync_delay,
                    .mix = parse_sync_mix(o.sync_mix)};
  check_streaming(made.streaming, made.communication_interval);
  made.test.attack = o.attack;
  made.allow_contract_violation = o.allow_contract_violation;
  made.transport = o.transport;
  made.nodes = o.nodes.value_or(0);
  if (!o.rendezvous.empty()) {
    check_store_url(o.rendezvous);
  }
  made.rendezvous = o.rendezvous;
  made.bind = o.bind;
  made.insecure = o.insecure;
  made.streams = o.streams;
  made.delayed_gradient = o.delayed_gradient;
  made.overlap = parse_switch("overlap", o.overlap);
  made.codec_threads = o.codec_threads;
  made.buckets = o.buckets;
  made.timeout = time_limit("timeout", o.timeout_s, kMostTimeoutSeconds);
  made.join = o.join.empty() ? Join::none : parse_join(o.join);
  if (!o.weight.empty()) {
    made.weight = parse_weight(o.weight);
  }
  return made;
}

}  // namespace sotto
