#include <sotto/optim/step_rule.h>

#include <cmath>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/base/names.h>
#include <sotto/optim/step_rule_info.h>
#include <sotto/optim/step_rule_spec.h>
#include <sotto/optim/step_rules/by_tensor.h>
#include <sotto/optim/step_rules/learning_rate.h>

namespace sotto {
namespace {

constexpr auto kBiasCorrections = {BiasCorrection::always, BiasCorrection::warmup,
                                   BiasCorrection::never};
constexpr auto kUpdateScales = {UpdateScale::original, UpdateScale::spectral, UpdateScale::adamw};

void require(bool holds, std::string_view field, double value, std::string_view range) {
  if (!holds) {
    refuse(field, fmt::format("{}", value), fmt::format("it must {}", range));
  }
}

}  // namespace

void check_step_rule_options(const StepRuleOptions& options) {
  require(is_learning_rate(options.learning_rate), "lr", options.learning_rate, kLearningRates);
  const auto in_float32 = [](double value) {
    return value >= 0 && value <= double{std::numeric_limits<float>::max()};
  };
  require(in_float32(options.weight_decay), "weight_decay", options.weight_decay,
          "be finite and not negative, also in float32");
  const auto below_one = [](double beta) { return beta >= 0 && static_cast<float>(beta) < 1; };
  require(below_one(options.momentum), "momentum", options.momentum,
          "lie in 0 … 1, 1 and what float32 rounds to it excluded");
  require(below_one(options.beta1), "beta1", options.beta1,
          "lie in 0 … 1, 1 and what float32 rounds to it excluded");
  require(below_one(options.beta2), "beta2", options.beta2,
          "lie in 0 … 1, 1 and what float32 rounds to it excluded");
  require(in_float32(options.epsilon) && static_cast<float>(options.epsilon) > 0, "epsilon",
          options.epsilon, "be finite and positive, also in float32");
  require(std::isfinite(options.trust_coefficient) && options.trust_coefficient > 0,
          "trust_coefficient", options.trust_coefficient, "be finite and positive");
  require(options.clip_norm > 0, "clip_norm", options.clip_norm, "be positive");
  if (options.nesterov && options.momentum == 0) {
    refuse("nesterov", "true", "it needs a momentum above 0");
  }
}

Status StepRule::next_model(Round round, std::span<const float> x, std::span<const float> gradient,
                            std::span<float> next, const Ops& ops) {
  if (Status status = direction(round, x, gradient, next); !status.ok()) {
    return status;
  }
  ops.subtract(x, next, next);
  return {};
}

Result<Direction> StepRule::direction_in(Round round, std::span<const float> x,
                                         std::span<const float> gradient, std::span<float> room) {
  Status status = direction(round, x, gradient, room);
  return status.ok() ? Result(Direction{1, room}) : std::move(status);
}

Status StepRule::direction_part(std::size_t /*first*/, std::span<const float> /*x*/,
                                std::span<const float> /*gradient*/, std::span<float> /*d*/) {
  return {Fault::unexpected, "a step rule that takes the gradient whole makes no parts"};
}

std::string_view bias_correction_name(BiasCorrection correction) {
  switch (correction) {
    case BiasCorrection::always:
      return "always";
    case BiasCorrection::warmup:
      return "warmup";
    case BiasCorrection::never:
      return "never";
  }
  return "unknown";
}

std::vector<std::string> bias_correction_names() {
  std::vector<std::string> names;
  for (const BiasCorrection correction : kBiasCorrections) {
    names.emplace_back(bias_correction_name(correction));
  }
  return names;
}

BiasCorrection parse_bias_correction(std::string_view name) {
  for (const BiasCorrection correction : kBiasCorrections) {
    if (bias_correction_name(correction) == name) {
      return correction;
    }
  }
  refuse_unknown("bias_correction", name, bias_correction_names());
}

std::string_view update_scale_name(UpdateScale scale) {
  switch (scale) {
    case UpdateScale::original:
      return "original";
    case UpdateScale::spectral:
      return "spectral";
    case UpdateScale::adamw:
      return "adamw";
  }
  return "unknown";
}

std::vector<std::string> update_scale_names() {
  std::vector<std::string> names;
  for (const UpdateScale scale : kUpdateScales) {
    names.emplace_back(update_scale_name(scale));
  }
  return names;
}

UpdateScale parse_update_scale(std::string_view name) {
  for (const UpdateScale scale : kUpdateScales) {
    if (update_scale_name(scale) == name) {
      return scale;
    }
  }
  refuse_unknown("update_scale", name, update_scale_names());
}

std::unique_ptr<StepRule> make_step_rule(const StepRuleOptions& options, const Ops& ops) {
  check_step_rule_options(options);
  StepRuleSpec spec = parse_step_rule(options.rule);
  if (spec.selected.empty()) {
    return spec.info->build(options, ops);
  }
  return std::make_unique<RulesByTensor>(std::move(spec), options, ops);
}

std::unique_ptr<StepRule> make_outer_step_rule(const StepRuleOptions& options, const Ops& ops) {
  try {
    return make_step_rule(options, ops);
  } catch (const Error& error) {
    throw error.renamed("outer_" + error.field());
  }
}

}  // namespace sotto
