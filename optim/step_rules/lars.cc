#include <sotto/optim/step_rules/lars.h>

#include <array>
#include <memory>

#include <sotto/base/error.h>
#include <sotto/kernels/norm.h>
#include <sotto/optim/state_io.h>
#include <sotto/optim/step_rules/finite_direction.h>
#include <sotto/optim/step_rules/trust_ratio.h>

namespace sotto {

Lars::Lars(const StepRuleOptions& options, const Ops& ops)
    : ops_(ops),
      rate_(options.learning_rate, options.schedule),
      clip_(options.clip_norm, ops),
      momentum_(static_cast<float>(options.momentum)),
      weight_decay_(options.weight_decay),
      trust_coefficient_(options.trust_coefficient) {}

void Lars::resize(const ParameterLayout& layout) {
  layout_ = layout;
  velocity_ = Vector(momentum_ == 0 ? 0 : dimension_of(layout), ops_);
}

Status Lars::direction(Round round, std::span<const float> x, std::span<const float> gradient,
                       std::span<float> d) {
  const double gamma = rate_.at(round);
  clip_.take(gradient, d);
  for (const ParameterBlock& block : layout_) {
    const auto step = block.of(d);
    double ratio = 1;
    if (has_trust_ratio(layout_, block)) {
      const double x_norm = norm(block.of(x), ops_);
      const double g_norm = norm(step, ops_);
      if (x_norm > 0 && g_norm > 0) {
        ratio = trust_coefficient_ * x_norm / (g_norm + weight_decay_ * x_norm);
      }
      ops_.axpy(static_cast<float>(weight_decay_), block.of(x), step);  // g + λ x
    }
    ops_.scale(step_factor(gamma, ratio), step);
  }
  if (momentum_ != 0) {
    ops_.combine({{momentum_, velocity_}, {1, d}}, velocity_);  // v ← μ v + γ r (g + λ x)
    ops_.copy(velocity_, d);
  }
  return finite_direction(d, ops_);
}

void Lars::save(ByteBuffer& out) const {
  out.write_string(name());
  write_floats(velocity_, out);
}

Status Lars::load(ByteReader& in) {
  if (Status status = expect_name(in, "step rule", name()); !status.ok()) {
    return status;
  }
  return read_floats(in, "momentum", velocity_);
}

namespace {

constexpr auto kLarsSettings = std::to_array<std::string_view>({"momentum", "trust_coefficient"});

std::unique_ptr<StepRule> build_lars(const StepRuleOptions& options, const Ops& ops) {
  if (options.nesterov) {
    refuse("nesterov", "true", "lars has no such form; leave it out");
  }
  return std::make_unique<Lars>(options, ops);
}

}  // namespace

constinit const StepRuleInfo Lars::kInfo = {
    .name = "lars",
    .learning_rate = 1,
    .outer_learning_rate = 1,
    .settings = kLarsSettings,
    .build = build_lars,
};

}  // namespace sotto
