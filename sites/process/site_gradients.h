// What leaves a site of its gradients: where it has a privacy budget, the mechanism hides them and
// nothing else leaves (docs/privacy.md).
//
// Thread safety: one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <sotto/base/status.h>
#include <sotto/optim/privacy/gaussian_mechanism.h>
#include <sotto/optim/privacy/privacy_options.h>
#include <sotto/trainers/privacy_budget.h>

namespace sotto {

class SiteGradients {
 public:
  /// For gradients of `dimension` elements. With privacy: opens its ledger, and counts what it has
  /// entered as spent. Throws Error.
  SiteGradients(std::size_t dimension, const std::optional<PrivacyOptions>& privacy);

  /// No gradient may leave any more.
  bool spent() const { return budget_ && budget_->exhausted(); }
  /// The gradient, ready to leave; valid until the next call, and as long as `gradient`. `loss` is
  /// that of the same batch. Requires that the budget is not spent. Fault::non_finite when the
  /// gradient or the loss is not finite, Fault::io when the step could not be entered; nothing is
  /// spent then.
  Result<std::span<const float>> release(std::span<const float> gradient,
                                         std::optional<double> loss);
  /// The loss of the last gradient; NaN before the first, where none was given, and where it is
  /// private.
  double loss() const { return loss_; }

  /// A saved state knows of so many steps: without the ledger what is spent cannot be known.
  Status expect_steps(std::uint64_t steps) const;
  std::uint64_t steps() const { return budget_ ? budget_->steps() : 0; }
  /// The privacy spent so far on this site's data; unset without a budget.
  std::optional<PrivacySpent> privacy() const;
  /// Enters what has left exactly; for an end in good order.
  Status settle();

 private:
  std::optional<PrivacyBudget> budget_;  ///< unset without privacy, as is mechanism_
  std::optional<GaussianMechanism> mechanism_;
  double loss_ = std::numeric_limits<double>::quiet_NaN();
  std::vector<float> hidden_;  ///< the gradient behind its noise; empty without privacy
};

}  // namespace sotto
