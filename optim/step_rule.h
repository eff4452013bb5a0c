// Step rules: from a gradient to the local update direction d, so that x ← x − d is the plain step.
//
// An algorithm asks its rule for d where its paper writes γ g. One thread at a time; a rule owns
// its moments (their size is stated with each rule) and allocates only in `resize`.
#pragma once

#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <sotto/base/bytes.h>
#include <sotto/base/ids.h>
#include <sotto/base/parameter_layout.h>
#include <sotto/base/status.h>
#include <sotto/kernels/ops.h>
#include <sotto/optim/schedule.h>

namespace sotto {

/// Whether Adam's moments, which start at 0, are divided by 1 − β^t.
enum class BiasCorrection {
  always,  ///< in every step, as torch.optim.Adam does
  warmup,  ///< until the variance is frozen (apmsqueeze, onebit-adam, …), not after it
  never,   ///< in no step, as DeepSpeed's 1-bit optimizers
};

/// "always", "warmup" or "never".
std::string_view bias_correction_name(BiasCorrection correction);
/// All names, in the order of the enumeration.
std::vector<std::string> bias_correction_names();
/// Throws Error unless `name` is one of always, warmup, never.
BiasCorrection parse_bias_correction(std::string_view name);

/// The rule for the length of Muon's steps (step_rules/muon.h).
enum class UpdateScale {
  original,  ///< √max(1, rows/columns)
  spectral,  ///< √(rows/columns)
  adamw,     ///< 0.2 √max(rows, columns)
};

/// "original", "spectral" or "adamw".
std::string_view update_scale_name(UpdateScale scale);
/// All names, in the order of the enumeration.
std::vector<std::string> update_scale_names();
/// Throws Error unless `name` is one of original, spectral, adamw.
UpdateScale parse_update_scale(std::string_view name);

/// Settings of all rules, under the names that torch.optim uses.
struct StepRuleOptions {
  /// One of step_rules() (optim/step_rule_info.h), and others for some tensors
  /// (optim/step_rule_spec.h): "sgd", "muon; head.*=adamw; 1d=adamw".
  std::string rule = "sgd";
  double learning_rate = 0.1;
  double momentum = 0;    ///< sgd: v ← μ v + g; lars, quasi-global, muon: in optim/step_rules/
  bool nesterov = false;  ///< sgd: d = γ (g + μ v); quasi-global, muon
  /// sgd, adam: g ← g + λ x; adamw, muon: d ← d + γ λ x; lars, lamb: there
  double weight_decay = 0;
  double beta1 = 0.9;  ///< adam, adamw, lamb
  double beta2 = 0.999;
  double epsilon = 1e-8;
  BiasCorrection bias_correction = BiasCorrection::always;  ///< adam, adamw, lamb
  double trust_coefficient = 0.001;                         ///< lars: η
  UpdateScale update_scale = UpdateScale::original;         ///< muon
  /// Gradients are scaled down to this Euclidean norm first (optim/step_rules/gradient_clip.h).
  double clip_norm = std::numeric_limits<double>::infinity();
  Schedule schedule = {};  ///< multiplies the learning rate
};

/// d = scale · values, where it need not be written.
struct Direction {
  float scale = 1;
  std::span<const float> values;
};

class StepRule {
 public:
  virtual ~StepRule() = default;

  /// The rule's name as `--step-rule` has it, "sgd".
  virtual std::string_view name() const = 0;
  /// Takes the tensors that all vectors consist of, and zeroes the moments. Called once, before the
  /// first direction.
  virtual void resize(const ParameterLayout& layout) = 0;
  /// Writes d for `round` given x and g; all three have the layout's dimension, and g and d may be
  /// one span. Fault::non_finite when d or a moment overflows; the rule has then taken the gradient
  /// in, and must be discarded unless it is stateless().
  virtual Status direction(Round round, std::span<const float> x, std::span<const float> gradient,
                           std::span<float> d) = 0;
  /// The direction for callers that only read d: it is the gradient or a moment with its factor,
  /// which stay as they are until the next direction, or else the d that `direction` writes in
  /// `room`.
  virtual Result<Direction> direction_in(Round round, std::span<const float> x,
                                         std::span<const float> gradient, std::span<float> room);
  /// Writes x − d, for an algorithm that steps so; g and `next` may be one span. `ops` is for where
  /// they lie. A rule that makes the next model at once, and d as a difference, spares itself two
  /// roundings here.
  virtual Status next_model(Round round, std::span<const float> x, std::span<const float> gradient,
                            std::span<float> next, const Ops& ops);
  /// Whether next_model may have x itself as `next`, which a long model is spared two copies by.
  virtual bool moves_in_place() const { return false; }
  /// Whether nothing of a gradient stays in the rule, and no element of d is finite where g's is
  /// not: then a gradient need not be looked through before it is taken. next_model faults where
  /// direction does.
  virtual bool stateless() const { return false; }
  /// Whether an element's direction depends on its own tensor alone, so that `direction_part` may
  /// be asked for one tensor after the other.
  virtual bool separable() const { return false; }
  /// Whether an element's direction depends on that element alone, so that the rule takes any piece
  /// of a model for a model.
  virtual bool by_element() const { return false; }
  /// Whether a part of a gradient may begin and end inside a tensor (direction_part).
  virtual bool takes_any_part() const { return by_element(); }
  /// Begins a round with a direction that is asked for in parts, in place of `direction`. Requires
  /// separable().
  virtual void begin_parts(Round /*round*/) {}
  /// `direction` of a part of the model, from element `first` on: of whole tensors that follow each
  /// other, unless takes_any_part(). Each element once a round, in any order of parts. Faults are
  /// those of `direction`.
  virtual Status direction_part(std::size_t first, std::span<const float> x,
                                std::span<const float> gradient, std::span<float> d);
  /// Whether directions also depend on how x moved since the one before, by mixing too
  /// (step_rules/quasi_global.h); for algorithms with StepRulesFit::may_follow_model.
  virtual bool follows_model() const { return false; }
  /// Changes the base learning rate γ, e.g. for a schedule of the caller's own.
  virtual void set_learning_rate(double learning_rate) = 0;

  /// Moments and counters, for checkpoints; load expects those of the same layout.
  virtual void save(ByteBuffer& out) const = 0;
  /// Restores the moments and counters that save wrote for the same layout.
  virtual Status load(ByteReader& in) = 0;
};

/// Throws Error for a setting outside its range, whatever the rule.
void check_step_rule_options(const StepRuleOptions& options);

/// Makes the rule of one node, for rules that sotto does not know.
using StepRuleFactory = std::function<std::unique_ptr<StepRule>()>;

/// Builds the rule that `options` name. Throws Error for an unknown rule or a setting outside its
/// range.
std::unique_ptr<StepRule> make_step_rule(const StepRuleOptions& options,
                                         const Ops& ops = host_ops());

/// Likewise, of a rule that takes the movement of several steps; settings that are refused are
/// named as those of the outer rule, "outer_lr".
std::unique_ptr<StepRule> make_outer_step_rule(const StepRuleOptions& options,
                                               const Ops& ops = host_ops());

}  // namespace sotto
