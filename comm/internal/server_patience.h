// How long a store waits for its server to answer. A pure function; thread-safe.
#pragma once

#include <algorithm>
#include <chrono>

#include <sotto/comm/deadline.h>

namespace sotto::internal {

/// A span from now, or until `stop`, which the caller keeps. Once a stop is requested, a node
/// that still asks wants to say why it leaves: a server that is there has time to take that, on a
/// slow link too.
inline Deadline server_patience(Deadline::Clock::duration span, const StopRequest& stop) {
  constexpr Deadline::Clock::duration kHurry = std::chrono::milliseconds(400);
  return stop && stop() ? Deadline::after(std::min(span, kHurry)) : Deadline::after(span, &stop);
}
/// A span for a look that has a deadline of its own, whose stop request goes before the store's.
inline Deadline server_patience(Deadline::Clock::duration span, const StopRequest& stop,
                                const Deadline& look) {
  return look.stop() == nullptr ? server_patience(span, stop) : Deadline::after(span, look.stop());
}

}  // namespace sotto::internal
