#include "inproc_hub.h"

#include <fmt/format.h>

#include <sotto/base/error.h>

#include "../internal/fault_text.h"

namespace sotto::internal {

void InprocHub::enter(Rank rank, std::shared_ptr<InprocEndpoint> endpoint) {
  {
    const std::lock_guard lock(mutex_);
    auto& place = endpoints_[rank];
    if (place && !place->left()) {
      refuse("rank", fmt::to_string(rank), "another node of this run has it");
    }
    place = std::move(endpoint);
  }
  entered_.notify_all();
}

Result<std::shared_ptr<InprocEndpoint>> InprocHub::meet(Rank rank, Deadline deadline) {
  std::unique_lock lock(mutex_);
  if (!wait_until(entered_, lock, deadline, [&] { return endpoints_.contains(rank); })) {
    return not_come({&rank, 1}, deadline);
  }
  return endpoints_[rank];
}

}  // namespace sotto::internal
