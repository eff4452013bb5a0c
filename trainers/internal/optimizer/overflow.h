// Updates that overflow. A step rule has then taken in what it cannot give back, so that no other
// gradient may follow: the fault ends the run, while that of a gradient with a NaN leaves the round
// open for another one. Pure function.
#pragma once

#include <span>

#include <sotto/base/status.h>
#include <sotto/compress/accelerator.h>
#include <sotto/kernels/ops.h>

namespace sotto::internal {

/// Whether `status` is the fault of an update by `gradient`, which is finite itself. It lies with
/// `accelerator`, or with the host where that is null, and `ops` are those of its memory.
inline bool is_overflow(const Status& status, std::span<const float> gradient, const Ops& ops,
                        Accelerator* accelerator) {
  if (status.fault() != Fault::non_finite) {
    return false;
  }
  const AcceleratorScope scope(accelerator);
  return ops.count_non_finite(gradient).count == 0;
}

/// The fault as the end of the run, with what to do about it.
inline Status final_overflow(const Status& status) {
  return {status.fault(),
          status.message() +
              "; the step rule has taken the gradient in, and no other may follow: go on from a "
              "checkpoint, with a lower learning rate"};
}

}  // namespace sotto::internal
