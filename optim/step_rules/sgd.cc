#include <sotto/optim/step_rules/sgd.h>

#include <array>

#include <sotto/base/error.h>
#include <sotto/optim/state_io.h>
#include <sotto/optim/step_rules/finite_direction.h>

namespace sotto {

Sgd::Sgd(const StepRuleOptions& options, const Ops& ops)
    : ops_(ops),
      rate_(options.learning_rate, options.schedule),
      clip_(options.clip_norm, ops),
      momentum_(static_cast<float>(options.momentum)),
      nesterov_(options.nesterov),
      weight_decay_(static_cast<float>(options.weight_decay)) {}

void Sgd::resize(const ParameterLayout& layout) {
  velocity_ = Vector(momentum_ == 0 ? 0 : dimension_of(layout), ops_);
}

Status Sgd::direction(Round round, std::span<const float> x, std::span<const float> gradient,
                      std::span<float> d) {
  begin_parts(round);
  return direction_of(clip_.factor(gradient), 0, x, gradient, d);
}

Result<Direction> Sgd::direction_in(Round round, std::span<const float> x,
                                    std::span<const float> gradient, std::span<float> room) {
  begin_parts(round);
  const bool plain = stateless() && weight_decay_ == 0;
  const bool moment = momentum_ != 0 && !nesterov_;
  // γ times what is finite is finite, unless it is made larger (or is no number).
  const bool safe = round_rate_ <= 1;
  if (!safe || !(plain || moment)) {
    return StepRule::direction_in(round, x, gradient, room);
  }
  const bool finite = plain ? ops_.count_non_finite(gradient).count == 0
                            : take_moment(clip_.factor(gradient), x, gradient, room);
  const std::span<const float> values = plain ? gradient : velocity_;
  return finite ? Direction{round_rate_, values}
                : Result<Direction>(finite_direction(values, ops_));
}

Status Sgd::next_model(Round round, std::span<const float> x, std::span<const float> gradient,
                       std::span<float> next, const Ops& ops) {
  // Both in one pass; what is not finite is named from the gradient, which must be left then.
  begin_parts(round);
  const bool plain = stateless() && weight_decay_ == 0 && next.data() != gradient.data();
  return plain && ops.combine({{1, x}, {-round_rate_, gradient}}, next)
             ? Status()
             : StepRule::next_model(round, x, gradient, next, ops);
}

Sgd& Sgd::of(StepRule& rule) {
  auto* sgd = dynamic_cast<Sgd*>(&rule);
  if (sgd == nullptr) {
    refuse("step_rule", rule.name(),
           "the algorithm goes by what sotto's own sgd keeps, and this is a rule of the caller's");
  }
  return *sgd;
}

void Sgd::save(ByteBuffer& out) const {
  out.write_string(name());
  write_floats(velocity_, out);
}

Status Sgd::load(ByteReader& in) {
  if (Status status = expect_name(in, "step rule", name()); !status.ok()) {
    return status;
  }
  return read_floats(in, "momentum", velocity_);
}

Status Sgd::direction_of(float clip, std::size_t at, std::span<const float> x,
                         std::span<const float> gradient, std::span<float> d) {
  const auto step = [&](std::size_t first, std::span<float> piece) {
    const Unscaled of = unscaled(clip, x.subspan(first, piece.size()),
                                 gradient.subspan(first, piece.size()), at + first, piece);
    return ops_.combine({{round_rate_, of.values}}, piece);
  };
  return by_piece(d, step) ? Status() : finite_direction(d, ops_);
}

bool Sgd::take_moment(float clip, std::span<const float> x, std::span<const float> gradient,
                      std::span<float> room) {
  return by_piece(room, [&](std::size_t first, std::span<float> piece) {
    return unscaled(clip, x.subspan(first, piece.size()), gradient.subspan(first, piece.size()),
                    first, piece)
        .finite;
  });
}

Sgd::Unscaled Sgd::unscaled(float clip, std::span<const float> x, std::span<const float> gradient,
                            std::size_t first, std::span<float> d) {
  std::span<const float> g = gradient;
  if (clip != 1) {
    ops_.combine({{clip, g}}, d);
    g = d;
  }
  if (weight_decay_ != 0) {
    ops_.combine({{1, g}, {weight_decay_, x}}, d);  // g ← g + λ x
    g = d;
  }
  if (momentum_ != 0) {
    const auto velocity = std::span(velocity_).subspan(first, d.size());
    const bool finite = ops_.combine({{momentum_, velocity}, {1, g}}, velocity);  // v ← μ v + g
    if (!nesterov_) {
      return {velocity, finite};  // d = γ v
    }
    ops_.combine({{1, g}, {momentum_, velocity}}, d);  // d = γ (g + μ v)
    g = d;
  }
  return {g, true};
}

namespace {

constexpr auto kSgdSettings = std::to_array<std::string_view>({"momentum", "nesterov"});

}  // namespace

constinit const StepRuleInfo Sgd::kInfo = {
    .name = "sgd",
    .learning_rate = 0.1,
    .outer_learning_rate = 1,
    .settings = kSgdSettings,
    .separable = true,
    .by_element = true,
    .build = build_step_rule<Sgd>,
};

}  // namespace sotto
