#include <sotto/trainers/privacy_budget.h>

#include <utility>

#include <fmt/format.h>

namespace sotto {

PrivacyBudget::PrivacyBudget(std::shared_ptr<StepBudget> steps) : steps_(std::move(steps)) {
  if (!steps_->options().ledger.empty()) {
    steps_->spend_at_least(ledger_.emplace(steps_->options()).steps());
  }
}

Status PrivacyBudget::enter_step() {
  return ledger_ && !exhausted() ? ledger_->enter(steps() + 1, steps_->allowed()) : Status();
}

Status PrivacyBudget::settle() { return ledger_ ? ledger_->settle(steps()) : Status(); }

Status PrivacyBudget::check_saved(std::uint64_t steps) const {
  if (ledger_ && steps > 0 && !ledger_->existed()) {
    return {Fault::malformed,
            fmt::format("{} is missing: what is spent of the privacy budget cannot be known; put "
                        "it back",
                        steps_->options().ledger)};
  }
  return {};
}

}  // namespace sotto
