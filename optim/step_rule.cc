#include <sotto/optim/step_rule.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/base/nearest.h>
#include <sotto/kernels/vector.h>
#include <sotto/optim/state_io.h>
#include <sotto/optim/step_rules/adam.h>
#include <sotto/optim/step_rules/finite_direction.h>
#include <sotto/optim/step_rules/gradient_clip.h>
#include <sotto/optim/step_rules/lamb.h>
#include <sotto/optim/step_rules/lars.h>
#include <sotto/optim/step_rules/learning_rate.h>

namespace sotto {
namespace {

/// torch.optim.SGD without dampening. Memory: d floats with momentum, else none.
class Sgd final : public StepRule {
 public:
  Sgd(const StepRuleOptions& options, const Ops& ops)
      : ops_(ops),
        rate_(options.learning_rate, options.schedule),
        clip_(options.clip_norm, ops),
        momentum_(static_cast<float>(options.momentum)),
        nesterov_(options.nesterov),
        weight_decay_(static_cast<float>(options.weight_decay)) {}

  std::string_view name() const override { return "sgd"; }

  void resize(const ParameterLayout& layout) override {
    velocity_ = Vector(momentum_ == 0 ? 0 : dimension_of(layout), ops_);
  }

  Status direction(Round round, std::span<const float> x, std::span<const float> gradient,
                   std::span<float> d) override {
    begin_parts(round);
    return direction_of(clip_.factor(gradient), 0, x, gradient, d);
  }
  Result<Direction> direction_in(Round round, std::span<const float> x,
                                 std::span<const float> gradient, std::span<float> room) override {
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
  Status next_model(Round round, std::span<const float> x, std::span<const float> gradient,
                    std::span<float> next, const Ops& ops) override {
    // Both in one pass; what is not finite is named from the gradient, which must be left then.
    begin_parts(round);
    const bool plain = stateless() && weight_decay_ == 0 && next.data() != gradient.data();
    return plain && ops.combine({{1, x}, {-round_rate_, gradient}}, next)
               ? Status()
               : StepRule::next_model(round, x, gradient, next, ops);
  }
  bool stateless() const override { return momentum_ == 0 && !clip_.clips(); }
  bool separable() const override { return !clip_.clips(); }
  void begin_parts(Round round) override { round_rate_ = static_cast<float>(rate_.at(round)); }
  Status direction_part(std::size_t first, std::span<const float> x,
                        std::span<const float> gradient, std::span<float> d) override {
    return direction_of(1, first, x, gradient, d);
  }

  void set_learning_rate(double learning_rate) override { rate_.set(learning_rate); }

  void save(ByteBuffer& out) const override {
    out.write_string(name());
    write_floats(velocity_, out);
  }

  Status load(ByteReader& in) override {
    if (Status status = expect_name(in, "step rule", name()); !status) {
      return status;
    }
    return read_floats(in, "momentum", velocity_);
  }

 private:
  /// d ← the direction of the gradient, all from element `at` of the model on.
  Status direction_of(float clip, std::size_t at, std::span<const float> x,
                      std::span<const float> gradient, std::span<float> d) {
    const auto step = [&](std::size_t first, std::span<float> piece) {
      const Unscaled of = unscaled(clip, x.subspan(first, piece.size()),
                                   gradient.subspan(first, piece.size()), at + first, piece);
      return ops_.combine({{round_rate_, of.values}}, piece);
    };
    return by_piece(d, step) ? Status() : finite_direction(d, ops_);
  }

  /// v ← μ v + g of the whole gradient, over `room`. Whether it is finite.
  bool take_moment(float clip, std::span<const float> x, std::span<const float> gradient,
                   std::span<float> room) {
    return by_piece(room, [&](std::size_t first, std::span<float> piece) {
      return unscaled(clip, x.subspan(first, piece.size()), gradient.subspan(first, piece.size()),
                      first, piece)
          .finite;
    });
  }

  /// Whether work(first, piece) is finite for all of d, a piece after the other, so that the memory
  /// is read and written once.
  template <typename Work>
  bool by_piece(std::span<float> d, const Work& work) const {
    bool finite = true;
    for (std::size_t first = 0; first < d.size(); first += ops_.piece()) {
      finite = work(first, d.subspan(first, std::min(ops_.piece(), d.size() - first))) && finite;
    }
    return finite;
  }

  /// What d is γ times: the gradient, the moment, or a sum of them in d.
  struct Unscaled {
    std::span<const float> values;
    bool finite;  ///< of the moment, where it is that
  };
  /// The unscaled direction of a piece, from element `first` of the model on.
  Unscaled unscaled(float clip, std::span<const float> x, std::span<const float> gradient,
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

  const Ops& ops_;
  LearningRate rate_;
  GradientClip clip_;
  float momentum_;
  bool nesterov_;
  float weight_decay_;
  float round_rate_ = 0;  ///< γ of the round
  Vector velocity_;
};

void require(bool holds, std::string_view field, double value, std::string_view range) {
  if (!holds) {
    refuse(field, fmt::format("{}", value), fmt::format("it must {}", range));
  }
}

void validate(const StepRuleOptions& options) {
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

}  // namespace

Status StepRule::next_model(Round round, std::span<const float> x, std::span<const float> gradient,
                            std::span<float> next, const Ops& ops) {
  if (Status status = direction(round, x, gradient, next); !status) {
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

BiasCorrection parse_bias_correction(std::string_view name) {
  for (const auto correction :
       {BiasCorrection::always, BiasCorrection::warmup, BiasCorrection::never}) {
    if (bias_correction_name(correction) == name) {
      return correction;
    }
  }
  refuse_unknown("bias_correction", name, {"always", "warmup", "never"});
}

std::unique_ptr<StepRule> make_step_rule(const StepRuleOptions& options, const Ops& ops) {
  validate(options);
  if (options.rule == "sgd") {
    return std::make_unique<Sgd>(options, ops);
  }
  if (options.rule == "lars") {
    if (options.nesterov) {
      refuse("nesterov", "true", "lars has no such form; leave it out");
    }
    return std::make_unique<Lars>(options, ops);
  }
  if (options.rule == "adam" || options.rule == "adamw" || options.rule == "lamb") {
    require(options.momentum == 0, "momentum", options.momentum,
            "be 0 with this rule, whose own momentum is beta1");
    if (options.rule == "lamb") {
      return std::make_unique<Lamb>(options, ops);
    }
    return std::make_unique<Adam>(options, options.rule == "adamw", ops);
  }
  refuse_unknown("step_rule", options.rule, {"sgd", "adam", "adamw", "lars", "lamb"});
}

}  // namespace sotto
