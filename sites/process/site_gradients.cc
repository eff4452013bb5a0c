#include <sotto/sites/process/site_gradients.h>

#include <cmath>
#include <memory>

#include <fmt/format.h>

#include <sotto/base/check.h>
#include <sotto/kernels/ops.h>

namespace sotto {

SiteGradients::SiteGradients(std::size_t dimension, const std::optional<PrivacyOptions>& privacy) {
  if (privacy) {
    budget_.emplace(std::make_shared<StepBudget>(*privacy));
    mechanism_.emplace(*privacy, 0);
    hidden_.resize(dimension);
  }
}

Result<std::span<const float>> SiteGradients::release(std::span<const float> gradient,
                                                      std::optional<double> loss) {
  check(!spent(), "no gradient leaves beyond the budget");
  if (const auto bad = host_ops().count_non_finite(gradient); bad.count > 0) {
    return Status(Fault::non_finite,
                  fmt::format("the gradient has {} of {} elements that are not finite, the first "
                              "at {}; a lower learning rate may help",
                              bad.count, gradient.size(), bad.first));
  }
  if (loss && !std::isfinite(*loss)) {
    return Status(Fault::non_finite,
                  fmt::format("the loss is {}; a lower learning rate may help", *loss));
  }
  if (!budget_) {
    loss_ = loss.value_or(std::numeric_limits<double>::quiet_NaN());
    return gradient;
  }
  if (Status status = budget_->enter_step(); !status.ok()) {
    return status;
  }
  mechanism_->release(budget_->steps(), gradient, hidden_);
  budget_->count_step();
  return std::span<const float>(hidden_);
}

Status SiteGradients::expect_steps(std::uint64_t steps) const {
  return budget_ ? budget_->check_saved(steps) : Status();
}

std::optional<PrivacySpent> SiteGradients::privacy() const {
  return budget_ ? std::optional(budget_->spent()) : std::nullopt;
}

Status SiteGradients::settle() { return budget_ ? budget_->settle() : Status(); }

}  // namespace sotto
