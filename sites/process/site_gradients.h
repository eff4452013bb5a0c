// Where a site's gradients come from: its task, and where it has a privacy budget, the mechanism
// that lets nothing else leave (docs/privacy.md).
//
// Thread safety: one thread at a time. The task is the caller's and must outlive it.
#pragma once

#include <cstddef>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <sotto/base/ids.h>
#include <sotto/base/status.h>
#include <sotto/optim/privacy/gaussian_mechanism.h>
#include <sotto/optim/privacy/privacy_options.h>
#include <sotto/trainers/privacy_budget.h>
#include <sotto/trainers/tasks/task.h>

namespace sotto {

class SiteGradients {
 public:
  /// With privacy: opens its ledger, and counts what it has entered as spent. Throws Error.
  SiteGradients(Task& task, const std::optional<PrivacyOptions>& privacy);

  /// No gradient may leave any more.
  bool spent() const { return budget_ && budget_->exhausted(); }
  /// The gradient of step `number` at the model, ready to leave; valid until the next call.
  /// Requires that the budget is not spent. Fault::non_finite when it or the loss is not finite,
  /// Fault::io when the step could not be entered; nothing is spent then.
  Result<std::span<const float>> next(Round number, std::span<const float> model);
  /// The loss of the last batch; NaN before the first, and where it is private.
  double loss() const { return loss_; }

  /// A saved state knows of so many steps: without the ledger what is spent cannot be known.
  Status expect_steps(std::uint64_t steps) const;
  std::uint64_t steps() const { return budget_ ? budget_->steps() : 0; }
  /// The privacy spent so far on this site's data; unset without a budget.
  std::optional<PrivacySpent> privacy() const;
  /// Enters what has left exactly; for an end in good order.
  Status settle();

 private:
  Task& task_;
  std::optional<PrivacyBudget> budget_;  ///< unset without privacy, as is mechanism_
  std::optional<GaussianMechanism> mechanism_;
  double loss_ = std::numeric_limits<double>::quiet_NaN();
  std::vector<float> gradient_;
};

}  // namespace sotto
