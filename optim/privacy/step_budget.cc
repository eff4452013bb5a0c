#include <sotto/optim/privacy/step_budget.h>

#include <algorithm>

#include <fmt/format.h>

#include <sotto/base/check.h>

namespace sotto {
namespace {

const PrivacyOptions& checked_privacy(const PrivacyOptions& options) {
  check_privacy(options);
  return options;
}

}  // namespace

StepBudget::StepBudget(const PrivacyOptions& options)
    : options_(checked_privacy(options)), allowed_(allowed_steps(options)) {}

std::string StepBudget::refusal() const {
  return fmt::format(
      "the privacy budget is spent: after {} steps epsilon is {:.6g} at delta {:g}, and another "
      "step would exceed {:g}; nothing was sent",
      steps_, epsilon_spent(options_, steps_), options_.delta, options_.epsilon.value_or(0));
}

PrivacySpent StepBudget::spent() const {
  const std::uint64_t left =
      allowed_ == kUnlimitedSteps ? allowed_ : allowed_ - std::min(steps_, allowed_);
  return {steps_, left, epsilon_spent(options_, steps_), options_.delta};
}

void StepBudget::count_step() {
  check(!exhausted(), "no step leaves beyond the privacy budget");
  ++steps_;
}

void StepBudget::spend_at_least(std::uint64_t steps) { steps_ = std::max(steps_, steps); }

}  // namespace sotto
