#include <sotto/sites/process/site_gradients.h>

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include <sotto/base/check.h>
#include <sotto/kernels/ops.h>

namespace sotto {

SiteGradients::SiteGradients(Task& task, const std::optional<PrivacyOptions>& privacy)
    : task_(task), privacy_(privacy), gradient_(task.dimension()) {
  if (privacy_) {
    check_privacy(*privacy_);
    mechanism_ = std::make_unique<GaussianMechanism>(*privacy_, 0);
    ledger_ = std::make_unique<PrivacyLedger>(*privacy_);
    steps_ = ledger_->steps();
    allowed_ = allowed_steps(*privacy_);
  }
}

Result<std::span<const float>> SiteGradients::next(Round number, std::span<const float> model) {
  check(!spent(), "no gradient leaves beyond the budget");
  const double loss = task_.loss_and_gradient(number, model, gradient_);
  if (const auto bad = host_ops().count_non_finite(gradient_); bad.count > 0) {
    return Status(Fault::non_finite,
                  fmt::format("the gradient has {} of {} elements that are not finite, the first "
                              "at {}; a lower learning rate may help",
                              bad.count, gradient_.size(), bad.first));
  }
  if (!std::isfinite(loss)) {
    return Status(Fault::non_finite,
                  fmt::format("the loss is {}; a lower learning rate may help", loss));
  }
  if (!privacy_) {
    loss_ = loss;
    return std::span<const float>(gradient_);
  }
  if (Status status = ledger_->enter(steps_ + 1, allowed_); !status.ok()) {
    return status;
  }
  mechanism_->release(steps_, gradient_, gradient_);
  ++steps_;
  return std::span<const float>(gradient_);
}

Status SiteGradients::expect_steps(std::uint64_t steps) const {
  if (steps > 0 && ledger_ && !ledger_->existed()) {
    return {Fault::malformed,
            fmt::format("{} is missing: what is spent of the privacy budget cannot be known; put "
                        "it back",
                        privacy_->ledger)};
  }
  return {};
}

std::optional<PrivacySpent> SiteGradients::privacy() const {
  if (!privacy_) {
    return std::nullopt;
  }
  const std::uint64_t left =
      allowed_ == kUnlimitedSteps ? allowed_ : allowed_ - std::min(steps_, allowed_);
  return PrivacySpent{steps_, left, epsilon_spent(*privacy_, steps_), privacy_->delta};
}

Status SiteGradients::settle() { return ledger_ ? ledger_->settle(steps_) : Status(); }

}  // namespace sotto
