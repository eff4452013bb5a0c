// The steps that a node's privacy budget allows, and those that have left.
//
// PrivateGradient and its owner share one, so that both know how many steps have left. A step
// beyond the budget is refused by the code that is about to release it.
//
// Thread safety: one thread at a time.
#pragma once

#include <cstdint>
#include <string>

#include <sotto/optim/privacy/accountant.h>
#include <sotto/optim/privacy/privacy_options.h>

namespace sotto {

/// The privacy budget that a node has spent so far.
struct PrivacySpent {
  std::uint64_t steps = 0;
  std::uint64_t left = kUnlimitedSteps;  ///< steps left before the budget is spent
  double epsilon = 0;                    ///< ε at delta
  double delta = 0;
};

class StepBudget {
 public:
  /// Nothing is spent but options.before. Throws Error for options that check_privacy refuses.
  explicit StepBudget(const PrivacyOptions& options);

  /// The mechanism and the budget, as given.
  const PrivacyOptions& options() const { return options_; }
  /// Steps that have left, or may have.
  std::uint64_t steps() const { return steps_; }
  /// Steps that the budget allows in all; kUnlimitedSteps without an end.
  std::uint64_t allowed() const { return allowed_; }
  /// No step may leave any more.
  bool exhausted() const { return steps_ >= allowed_; }
  /// Why the next step is refused, in words. Requires exhausted().
  std::string refusal() const;
  /// The spending of the steps so far, and of what was told before them.
  PrivacySpent spent() const;

  /// A step leaves. Requires that the budget is not exhausted.
  void count_step();
  /// Counts at least `steps` steps from now on, e.g. those of a run that was lost.
  void spend_at_least(std::uint64_t steps);

 private:
  PrivacyOptions options_;
  std::uint64_t allowed_;
  std::uint64_t steps_ = 0;
};

}  // namespace sotto
