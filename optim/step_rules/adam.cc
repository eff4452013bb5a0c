#include <sotto/optim/step_rules/adam.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <memory>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/optim/state_io.h>
#include <sotto/optim/step_rules/finite_direction.h>

namespace sotto {

Adam::Adam(const StepRuleOptions& options, bool decoupled, const Ops& ops)
    : ops_(ops),
      rate_(options.learning_rate, options.schedule),
      clip_(options.clip_norm, ops),
      beta1_(static_cast<float>(options.beta1)),
      beta2_(static_cast<float>(options.beta2)),
      epsilon_(static_cast<float>(options.epsilon)),
      weight_decay_(options.weight_decay),
      decoupled_(decoupled),
      correction_(options.bias_correction) {}

void Adam::resize(const ParameterLayout& layout) {
  first_ = Vector(dimension_of(layout), ops_);
  second_ = Vector(dimension_of(layout), ops_);
  beta1_power_ = 1;
  beta2_power_ = 1;
}

Status Adam::direction(Round round, std::span<const float> x, std::span<const float> gradient,
                       std::span<float> d) {
  begin_parts(round);
  clip_.take(gradient, d);
  return step(0, x, d);
}

void Adam::begin_parts(Round round) {
  gamma_ = rate_.at(round);
  // β^t by a running product: the same bits on every platform, which pow() does not promise. It
  // is of the float β that the moments are weighted with, so that the correction is exact.
  beta1_power_ *= static_cast<double>(beta1_);
  beta2_power_ *= static_cast<double>(beta2_);
}

Status Adam::direction_part(std::size_t first, std::span<const float> x,
                            std::span<const float> gradient, std::span<float> d) {
  ops_.copy(gradient, d);
  return step(first, x, d);
}

Status Adam::step(std::size_t first, std::span<const float> x, std::span<float> d) {
  if (!decoupled_ && weight_decay_ != 0) {
    ops_.axpy(static_cast<float>(weight_decay_), x, d);  // g ← g + λ x
  }
  step_with(gamma_,
            {.m = std::span(first_).subspan(first, d.size()),
             .v = std::span(second_).subspan(first, d.size()),
             .beta1_power = beta1_power_,
             .beta2_power = beta2_power_},
            d);
  if (decoupled_ && weight_decay_ != 0) {
    ops_.axpy(static_cast<float>(gamma_ * weight_decay_), x, d);  // d ← d + γ λ x
  }
  const Status status = require_finite_variance(first, d.size());
  return status.ok() ? finite_direction(d, ops_) : status;
}

void Adam::step_with(double gamma, const Moments& moments, std::span<float> g) const {
  const bool corrected = correction_ != BiasCorrection::never;
  const double rate = corrected ? gamma / (1 - moments.beta1_power) : gamma;
  const double scale = corrected ? 1 / std::sqrt(1 - moments.beta2_power) : 1;
  ops_.adam(g, beta1_, moments.learns ? beta2_ : 1, static_cast<float>(rate),
            static_cast<float>(scale), epsilon_, moments.m, moments.v, g);
}

void Adam::adopt(std::size_t k, const Moments& moments) {
  const bool was_corrected = correction_ != BiasCorrection::never;
  const bool will_be_corrected = correction_ == BiasCorrection::always;
  const auto carried_over = [&](float moment, double its_power, double own_power) {
    const double corrected = was_corrected ? moment / (1 - its_power) : moment;
    return static_cast<float>(will_be_corrected ? corrected * (1 - own_power) : corrected);
  };
  momentum()[k] = carried_over(moments.m.front(), moments.beta1_power, beta1_power_);
  variance()[k] = carried_over(moments.v.front(), moments.beta2_power, beta2_power_);
}

Status Adam::require_finite_variance(std::size_t first, std::size_t count) const {
  const NonFinite bad = ops_.count_non_finite(std::span(second_).subspan(first, count));
  if (bad.count == 0) {
    return {};
  }
  // It would make the step 0 for ever, which nothing else notices.
  return {Fault::non_finite,
          fmt::format("the second moment overflows in {} elements of {}, the first is number {}; "
                      "clip the gradients, or look at the data",
                      bad.count, count, first + bad.first)};
}

double Adam::variance_norm() const {
  return beta2_power_ == 1 ? 0 : ops_.sum(second_) / (1 - beta2_power_);
}

Round Adam::variance_memory(float beta2) {
  constexpr double kLongest = 1e15;  // for a β₂ that float32 rounds to 1
  return static_cast<Round>(std::llround(std::min(kLongest, 1 / (1 - static_cast<double>(beta2)))));
}

void Adam::penalize(std::span<const float> x, std::span<float> g) const {
  if (weight_decay_ != 0) {
    ops_.axpy(static_cast<float>(weight_decay_), x, g);
  }
}

void Adam::momentum_after(std::span<float> g) const {
  ops_.combine({{1 - beta1_, g}, {beta1_, first_}}, g);
}

void Adam::frozen_direction(Round round, std::span<float> d) {
  check(!decoupled_, "a frozen direction knows no decoupled weight decay");
  beta1_power_ *= static_cast<double>(beta1_);
  const bool corrected = correction_ == BiasCorrection::always;
  const double gamma = rate_.at(round);
  const double step = corrected ? gamma / (1 - beta1_power_) : gamma;
  const double root_scale = corrected ? 1 / std::sqrt(1 - beta2_power_) : 1;
  // With both β at 1 the moments keep their values, and the direction is rounded as above.
  ops_.adam(first_, 1, 1, static_cast<float>(step), static_cast<float>(root_scale), epsilon_,
            first_, second_, d);
}

Status Adam::observe(std::span<const float> gradient) {
  beta2_power_ *= static_cast<double>(beta2_);
  const std::span<float> second = second_;
  for (std::size_t k = 0; k < second.size(); ++k) {
    second[k] = beta2_ * second[k] + (1 - beta2_) * gradient[k] * gradient[k];
  }
  return require_finite_variance(0, second_.size());
}

double Adam::next_rate(Round round) {
  beta1_power_ *= static_cast<double>(beta1_);
  const bool corrected = correction_ == BiasCorrection::always;
  const double rate = corrected ? rate_.at(round) / (1 - beta1_power_) : rate_.at(round);
  return std::min(rate, static_cast<double>(std::numeric_limits<float>::max()));
}

float Adam::root_scale(double updates_power) const {
  const bool corrected = correction_ == BiasCorrection::always && updates_power < 1;
  return corrected ? static_cast<float>(1 / std::sqrt(1 - updates_power)) : 1;
}

void Adam::precondition(double step, std::span<float> u, std::span<float> d) {
  ops_.adam(u, 1, 1, static_cast<float>(step), root_scale(beta2_power_), epsilon_, u, second_, d);
}

float Adam::variance_after(std::size_t k, double updates_power) const {
  const float ratio = root_scale(beta2_power_) / root_scale(updates_power);
  return variance()[k] * ratio * ratio;
}

double Adam::denominator_of(float v, double updates_power) const {
  return static_cast<double>(std::sqrt(v) * root_scale(updates_power) + epsilon_);
}

Adam& Adam::of(StepRule& rule) {
  auto* adam = dynamic_cast<Adam*>(&rule);
  if (adam == nullptr) {
    refuse("step_rule", rule.name(),
           "the algorithm goes by what sotto's own adam keeps, and this is a rule of the caller's");
  }
  return *adam;
}

void Adam::save(ByteBuffer& out) const {
  out.write_string(name());
  out.write(beta1_power_);
  out.write(beta2_power_);
  write_floats(first_, out);
  write_floats(second_, out);
}

Status Adam::load(ByteReader& in) {
  if (Status status = expect_name(in, "step rule", name()); !status.ok()) {
    return status;
  }
  beta1_power_ = in.read<double>();
  beta2_power_ = in.read<double>();
  const auto is_power = [](double value) { return value >= 0 && value <= 1; };
  if (in.failed() || !is_power(beta1_power_) || !is_power(beta2_power_)) {
    return {Fault::malformed,
            fmt::format("powers of β, {} and {}, do not lie in 0 … 1", beta1_power_, beta2_power_)};
  }
  if (Status status = read_floats(in, "first moment", first_); !status.ok()) {
    return status;
  }
  return read_floats(in, "second moment", second_);
}

void refuse_momentum(const StepRuleOptions& options) {
  if (options.momentum != 0) {
    refuse("momentum", fmt::to_string(options.momentum),
           "it must be 0 with this rule, whose own momentum is beta1");
  }
}

namespace {

constexpr auto kAdamSettings =
    std::to_array<std::string_view>({"beta1", "beta2", "epsilon", "bias_correction"});

template <bool decoupled>
std::unique_ptr<StepRule> build_adam(const StepRuleOptions& options, const Ops& ops) {
  refuse_momentum(options);
  return std::make_unique<Adam>(options, decoupled, ops);
}

}  // namespace

constinit const StepRuleInfo Adam::kAdam = {
    .name = "adam",
    .learning_rate = 0.001,
    .outer_learning_rate = 0.001,
    .settings = kAdamSettings,
    .separable = true,
    .by_element = true,
    .planned = true,
    .build = build_adam<false>,
};

constinit const StepRuleInfo Adam::kAdamW = {
    .name = "adamw",
    .learning_rate = 0.001,
    .outer_learning_rate = 0.001,
    .settings = kAdamSettings,
    .separable = true,
    .by_element = true,
    .build = build_adam<true>,
};

}  // namespace sotto
