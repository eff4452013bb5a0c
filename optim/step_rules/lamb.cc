#include <sotto/optim/step_rules/lamb.h>

#include <array>
#include <memory>

#include <sotto/base/error.h>
#include <sotto/kernels/norm.h>
#include <sotto/optim/state_io.h>
#include <sotto/optim/step_rules/finite_direction.h>
#include <sotto/optim/step_rules/trust_ratio.h>

namespace sotto {
namespace {

StepRuleOptions moments_alone(StepRuleOptions options) {
  options.learning_rate = 1;
  options.schedule = {};
  options.weight_decay = 0;
  return options;
}

}  // namespace

Lamb::Lamb(const StepRuleOptions& options, const Ops& ops)
    : ops_(ops),
      rate_(options.learning_rate, options.schedule),
      weight_decay_(options.weight_decay),
      adam_(moments_alone(options), false, ops) {}

void Lamb::resize(const ParameterLayout& layout) {
  layout_ = layout;
  adam_.resize(layout);
  ratios_.assign(layout.size(), 1);
}

Status Lamb::direction(Round round, std::span<const float> x, std::span<const float> gradient,
                       std::span<float> d) {
  const double gamma = rate_.at(round);
  if (Status status = adam_.direction(round, x, gradient, d); !status.ok()) {
    return status;
  }
  for (std::size_t i = 0; i < layout_.size(); ++i) {
    const ParameterBlock& block = layout_[i];
    const auto step = block.of(d);
    decay(block, x, step);
    ratios_[i] = 1;
    if (has_trust_ratio(layout_, block)) {
      ratios_[i] = trust_ratio(block, x, step);
    }
    ops_.scale(step_factor(gamma, ratios_[i]), step);
  }
  return finite_direction(d, ops_);
}

double Lamb::trust_ratio(const ParameterBlock& block, std::span<const float> x,
                         std::span<const float> u) const {
  const double x_norm = norm(block.of(x), ops_);
  const double u_norm = norm(u, ops_);
  return x_norm > 0 && u_norm > 0 ? x_norm / u_norm : 1;
}

void Lamb::decay(const ParameterBlock& block, std::span<const float> x, std::span<float> u) const {
  if (has_trust_ratio(layout_, block)) {
    ops_.axpy(static_cast<float>(weight_decay_), block.of(x), u);
  }
}

Lamb& Lamb::of(StepRule& rule) {
  auto* lamb = dynamic_cast<Lamb*>(&rule);
  if (lamb == nullptr) {
    refuse("step_rule", rule.name(),
           "the algorithm goes by what sotto's own lamb keeps, and this is a rule of the caller's");
  }
  return *lamb;
}

void Lamb::save(ByteBuffer& out) const {
  out.write_string(name());
  adam_.save(out);
}

Status Lamb::load(ByteReader& in) {
  if (Status status = expect_name(in, "step rule", name()); !status.ok()) {
    return status;
  }
  return adam_.load(in);
}

namespace {

constexpr auto kLambSettings = std::to_array<std::string_view>({"beta1", "beta2", "epsilon"});

std::unique_ptr<StepRule> build_lamb(const StepRuleOptions& options, const Ops& ops) {
  refuse_momentum(options);
  return std::make_unique<Lamb>(options, ops);
}

}  // namespace

constinit const StepRuleInfo Lamb::kInfo = {
    .name = "lamb",
    .learning_rate = 0.001,
    .outer_learning_rate = 0.001,
    .settings = kLambSettings,
    .build = build_lamb,
};

}  // namespace sotto
