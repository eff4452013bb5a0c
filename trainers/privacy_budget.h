// A node's privacy budget over all its runs: what its steps have spent (optim/privacy/
// step_budget.h), and the ledger that counts a step before it leaves (files/privacy_ledger.h), so
// that a run that crashed, or that goes on from an old state, gets nothing back.
//
// Thread safety: one thread at a time; one process a ledger.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include <sotto/base/status.h>
#include <sotto/optim/privacy/step_budget.h>
#include <sotto/trainers/files/privacy_ledger.h>

namespace sotto {

class PrivacyBudget {
 public:
  /// Opens the ledger, if steps->options() name one, and counts what it has entered as spent.
  /// `steps` may be shared with a PrivateGradient. Throws Error for a ledger that is damaged or was
  /// kept for another mechanism.
  explicit PrivacyBudget(std::shared_ptr<StepBudget> steps);

  /// No step may leave any more.
  bool exhausted() const { return steps_->exhausted(); }
  /// Steps that have left, or may have.
  std::uint64_t steps() const { return steps_->steps(); }
  /// The spending of all runs on this ledger.
  PrivacySpent spent() const { return steps_->spent(); }

  /// Makes the ledger count the step to come, before it leaves; of an exhausted budget none comes,
  /// and nothing is entered. Fault::io when the ledger cannot be written: the step must not leave.
  Status enter_step();
  /// The step that was entered leaves. For a caller without a PrivateGradient, which counts itself.
  void count_step() { steps_->count_step(); }
  /// Makes the ledger count exactly what has left; for an end in good order, and before a state is
  /// saved.
  Status settle();
  /// Whether a run may go on from a saved state that knows of `steps` steps: Fault::malformed when
  /// the ledger that goes with it is missing, so that what is spent cannot be known.
  Status check_saved(std::uint64_t steps) const;

 private:
  std::shared_ptr<StepBudget> steps_;
  std::optional<PrivacyLedger> ledger_;
};

}  // namespace sotto
