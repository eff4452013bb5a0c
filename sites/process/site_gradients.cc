#include <sotto/sites/process/site_gradients.h>

#include <cmath>
#include <memory>

#include <fmt/format.h>

#include <sotto/base/check.h>
#include <sotto/kernels/ops.h>

namespace sotto {

SiteGradients::SiteGradients(Task& task, const std::optional<PrivacyOptions>& privacy)
    : task_(task), gradient_(task.dimension()) {
  if (privacy) {
    budget_.emplace(std::make_shared<StepBudget>(*privacy));
    mechanism_.emplace(*privacy, 0);
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
  if (!budget_) {
    loss_ = loss;
    return std::span<const float>(gradient_);
  }
  if (Status status = budget_->enter_step(); !status.ok()) {
    return status;
  }
  mechanism_->release(budget_->steps(), gradient_, gradient_);
  budget_->count_step();
  return std::span<const float>(gradient_);
}

Status SiteGradients::expect_steps(std::uint64_t steps) const {
  return budget_ ? budget_->check_saved(steps) : Status();
}

std::optional<PrivacySpent> SiteGradients::privacy() const {
  return budget_ ? std::optional(budget_->spent()) : std::nullopt;
}

Status SiteGradients::settle() { return budget_ ? budget_->settle() : Status(); }

}  // namespace sotto
