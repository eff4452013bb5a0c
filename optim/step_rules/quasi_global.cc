#include <sotto/optim/step_rules/quasi_global.h>

#include <array>
#include <cmath>

#include <sotto/optim/state_io.h>
#include <sotto/optim/step_rules/finite_direction.h>

namespace sotto {
namespace {

/// A smaller γ⁻ would divide what rounding left in x⁻ − x.
constexpr double kLeastRate = 1e-8;

}  // namespace

QuasiGlobal::QuasiGlobal(const StepRuleOptions& options, const Ops& ops)
    : ops_(ops),
      rate_(options.learning_rate, options.schedule),
      clip_(options.clip_norm, ops),
      momentum_(options.momentum),
      nesterov_(options.nesterov),
      weight_decay_(static_cast<float>(options.weight_decay)) {}

void QuasiGlobal::resize(const ParameterLayout& layout) {
  moment_ = Vector(dimension_of(layout), ops_);
  before_ = Vector(dimension_of(layout), ops_);
}

Status QuasiGlobal::direction(Round round, std::span<const float> x,
                              std::span<const float> gradient, std::span<float> d) {
  begin_parts(round);
  return direction_of(clip_.factor(gradient), 0, x, gradient, d);
}

void QuasiGlobal::begin_parts(Round round) {
  movement_ = round_rate_ < kLeastRate ? 0 : (1 - momentum_) / round_rate_;
  round_rate_ = rate_.at(round);
}

Status QuasiGlobal::direction_of(float clip, std::size_t first, std::span<const float> x,
                                 std::span<const float> gradient, std::span<float> d) {
  const auto moment = std::span(moment_).subspan(first, d.size());
  const auto before = std::span(before_).subspan(first, d.size());
  bool finite = true;
  // 1. m ← μ m + (1 − μ) (x⁻ − x) / γ⁻
  if (movement_ > 0) {
    ops_.subtract(before, x, before);
    finite = ops_.combine(
        {{static_cast<float>(momentum_), moment}, {static_cast<float>(movement_), before}}, moment);
  }
  ops_.copy(x, before);

  // 2. g ← g + λ x; d = γ (μ m + g), or γ ((1 + μ) g + μ² m)
  ops_.combine({{clip, gradient}}, d);
  if (weight_decay_ != 0) {
    ops_.combine({{1, d}, {weight_decay_, x}}, d);
  }
  const double of_gradient = nesterov_ ? 1 + momentum_ : 1;
  const double of_moment = nesterov_ ? momentum_ * momentum_ : momentum_;
  finite = ops_.combine({{static_cast<float>(round_rate_ * of_gradient), d},
                         {static_cast<float>(round_rate_ * of_moment), moment}},
                        d) &&
           finite;
  if (finite) {
    return {};
  }
  Status status = finite_direction(d, ops_);
  return status.ok() ? finite_direction(moment, ops_) : status;
}

void QuasiGlobal::save(ByteBuffer& out) const {
  out.write_string(name());
  out.write(round_rate_);
  write_floats(moment_, out);
  write_floats(before_, out);
}

Status QuasiGlobal::load(ByteReader& in) {
  if (Status status = expect_name(in, "step rule", name()); !status.ok()) {
    return status;
  }
  round_rate_ = in.read<double>();
  if (in.failed() || !is_learning_rate(round_rate_)) {
    return {Fault::malformed, "checkpoint without the learning rate of the last step"};
  }
  if (Status status = read_floats(in, "momentum", moment_); !status.ok()) {
    return status;
  }
  return read_floats(in, "model of the step before", before_);
}

namespace {

constexpr auto kQuasiGlobalSettings = std::to_array<std::string_view>({"momentum", "nesterov"});

}  // namespace

constinit const StepRuleInfo QuasiGlobal::kInfo = {
    .name = "quasi-global",
    .learning_rate = 0.1,
    .outer_learning_rate = 1,
    .momentum = 0.9,
    .settings = kQuasiGlobalSettings,
    .separable = true,
    .by_element = true,
    .build = build_step_rule<QuasiGlobal>,
};

}  // namespace sotto
