// A node's privacy budget: what its steps spend, and the file that counts them before they leave.
// One thread at a time; the mechanism must outlive it.
#pragma once

#include <optional>

#include <sotto/base/status.h>
#include <sotto/optim/privacy/privacy_options.h>
#include <sotto/optim/privacy/private_gradient.h>
#include <sotto/trainers/optimizer.h>
#include <sotto/trainers/privacy_ledger.h>

namespace sotto::internal {

class PrivacyBudget {
 public:
  /// Opens the ledger, if the options name one. Throws Error.
  PrivacyBudget(const PrivacyOptions& options, PrivateGradient& mechanism);

  /// Makes the ledger count the step to come, before it leaves.
  Status enter_step();
  /// Makes the ledger count exactly what has left.
  Status settle();
  /// Fault::malformed for a state that was loaded without the ledger that goes with it.
  Status check_loaded() const;
  PrivacySpent spent() const;

 private:
  const PrivacyOptions& options_;
  PrivateGradient& mechanism_;
  std::optional<PrivacyLedger> ledger_;
};

}  // namespace sotto::internal
