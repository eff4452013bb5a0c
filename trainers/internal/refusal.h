// Which faults refuse a gradient and leave its round open. A pure function; thread-safe.
#pragma once

#include <sotto/base/status.h>

namespace sotto::internal {

inline bool is_refusal(const Status& status) {
  return status.fault() == Fault::non_finite || status.fault() == Fault::budget;
}

}  // namespace sotto::internal
