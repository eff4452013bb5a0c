#include "overdue.h"

#include <fmt/format.h>

namespace sotto::internal {

Status naming_timeout(const Status& status, std::chrono::milliseconds timeout) {
  if (status.fault() != Fault::deadline) {
    return status;
  }
  return {Fault::deadline, fmt::format("{} (the timeout is {} s)", status.message(),
                                       std::chrono::duration<double>(timeout).count())};
}

}  // namespace sotto::internal
