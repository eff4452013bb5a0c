// A node's own steps from one step of the run to the next, where nodes that come and go have one
// model: optim/wrappers/local_steps.h has rule, papers and symbols. The run's step is one of the
// outer rule by the mean of all Δ_i, which EpochMember makes.
//
// One thread at a time. Views the caller's parameters x_i; owns all else. Memory: 3 floats a
// parameter (s, Δ_i, scratch), and the local rule's.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include <sotto/base/bytes.h>
#include <sotto/base/ids.h>
#include <sotto/base/parameter_layout.h>
#include <sotto/base/status.h>
#include <sotto/optim/step_rule.h>

namespace sotto::sites {

class EpochLocalSteps {
 public:
  /// `parameters` must outlive the object and stay where they are. H, `interval`, is 1 or more.
  EpochLocalSteps(std::span<float> parameters, const ParameterLayout& layout, Round interval,
                  std::unique_ptr<StepRule> rule);

  /// s, the run's model, which the member moves.
  std::span<float> run_model() { return run_model_; }
  /// s = x_i, the initial model.
  void take_initial();
  /// Begins at the run's model: x_i = s, Δ_i = 0. The rule keeps what it remembers.
  void begin();
  /// A step in the run's round `round`: Δ_i ← Δ_i + d(g_i), x_i = s − Δ_i. Fault::non_finite: a
  /// gradient that is not finite changes nothing; another fault, says `spoilt`, is final.
  Status take(Round round, std::span<const float> gradient, double loss);
  /// Writes what the rule remembers.
  void save(ByteBuffer& out) const { rule_->save(out); }
  /// Takes that back; Fault::malformed, or another for what another rule wrote.
  Status load(ByteReader& in) { return rule_->load(in); }
  /// Whether the rule has taken in a gradient from which no finite step came.
  bool spoilt() const { return spoilt_; }
  /// Steps since begin().
  Round taken() const { return taken_; }
  /// Whether H steps were made.
  bool due() const { return taken_ >= interval_; }
  /// H.
  Round interval() const { return interval_; }
  /// Δ_i.
  std::span<const float> movement() const { return moved_; }
  /// The mean of the losses since begin(); NaN without a step.
  double loss() const { return losses_ / static_cast<double>(taken_); }

 private:
  Status spoil(Status status);

  std::span<float> x_;
  Round interval_;
  std::unique_ptr<StepRule> rule_;
  std::vector<float> run_model_;  // s
  std::vector<float> moved_;      // Δ_i
  std::vector<float> work_;
  Round taken_ = 0;
  double losses_ = 0;
  bool spoilt_ = false;
};

}  // namespace sotto::sites
