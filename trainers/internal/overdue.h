// How a wait that ended says which setting ended it. Pure functions; thread-safe.
#pragma once

#include <chrono>

#include <sotto/base/status.h>

namespace sotto::internal {

/// A deadline with "(the timeout is 60 s)" behind its message; any other status as it is.
Status naming_timeout(const Status& status, std::chrono::milliseconds timeout);

}  // namespace sotto::internal
