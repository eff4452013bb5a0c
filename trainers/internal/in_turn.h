// The work of a scope, on an accelerator, after the caller's so far, and the caller's after it. A
// scope begins when nothing but the caller is waited for, as what is put there later waits as well.
#pragma once

#include <sotto/compress/accelerator.h>

namespace sotto::internal {

class InTurn {
 public:
  /// Null: no accelerator, nothing to do.
  explicit InTurn(Accelerator* accelerator) : accelerator_(accelerator) {
    if (accelerator_ != nullptr) {
      accelerator_->follow_caller();
    }
  }
  ~InTurn() {
    if (accelerator_ != nullptr) {
      accelerator_->lead_caller();
    }
  }
  InTurn(const InTurn&) = delete;
  InTurn& operator=(const InTurn&) = delete;

 private:
  Accelerator* const accelerator_;
};

}  // namespace sotto::internal
