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
#include <sotto/trainers/optimizer.h>
#include <sotto/trainers/privacy_ledger.h>
#include <sotto/trainers/task.h>

namespace sotto {

class SiteGradients {
 public:
  /// With privacy: opens its ledger, and counts what it has entered as spent. Throws Error.
  SiteGradients(Task& task, const std::optional<PrivacyOptions>& privacy);

  /// No gradient may leave any more.
  bool spent() const { return privacy_ && steps_ >= allowed_; }
  /// The gradient of step `number` at the model, ready to leave; valid until the next call.
  /// Requires that the budget is not spent. Fault::non_finite when it or the loss is not finite,
  /// Fault::io when the step could not be entered; nothing is spent then.
  Result<std::span<const float>> next(Round number, std::span<const float> model);
  /// The loss of the last batch; NaN before the first, and where it is private.
  double loss() const { return loss_; }

  /// A saved state knows of so many steps: without the ledger what is spent cannot be known.
  Status expect_steps(std::uint64_t steps) const;
  std::uint64_t steps() const { return steps_; }
  /// What the data have been told; unset without a budget.
  std::optional<PrivacySpent> privacy() const;
  /// Enters what has left exactly; for an end in good order.
  Status settle();

 private:
  Task& task_;
  std::optional<PrivacyOptions> privacy_;
  std::unique_ptr<PrivacyLedger> ledger_;
  std::unique_ptr<GaussianMechanism> mechanism_;
  std::uint64_t steps_ = 0;
  std::uint64_t allowed_ = kUnlimitedSteps;
  double loss_ = std::numeric_limits<double>::quiet_NaN();
  std::vector<float> gradient_;
};

}  // namespace sotto
