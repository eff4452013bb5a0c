#include "privacy_budget.h"

#include <algorithm>
#include <cstdint>

#include <fmt/format.h>

namespace sotto::internal {

PrivacyBudget::PrivacyBudget(const PrivacyOptions& options, PrivateGradient& mechanism)
    : options_(options), mechanism_(mechanism) {
  if (!options.ledger.empty()) {
    mechanism_.spend_at_least(ledger_.emplace(options).steps());
  }
}

Status PrivacyBudget::enter_step() {
  const bool refused = mechanism_.steps() >= mechanism_.allowed();
  return ledger_ && !refused ? ledger_->enter(mechanism_.steps() + 1, mechanism_.allowed())
                             : Status();
}

Status PrivacyBudget::settle() { return ledger_ ? ledger_->settle(mechanism_.steps()) : Status(); }

Status PrivacyBudget::check_loaded() const {
  if (ledger_ && mechanism_.steps() > 0 && !ledger_->existed()) {
    return {Fault::malformed,
            fmt::format("{} is missing: what is spent of the privacy budget cannot be known",
                        options_.ledger)};
  }
  return {};
}

PrivacySpent PrivacyBudget::spent() const {
  const std::uint64_t steps = mechanism_.steps();
  const std::uint64_t allowed = mechanism_.allowed();
  return {steps, allowed == kUnlimitedSteps ? allowed : allowed - std::min(steps, allowed),
          epsilon_spent(options_, steps), options_.delta};
}

}  // namespace sotto::internal
