// Waiting between two looks at something that cannot wake us: 1 ms, growing to 20 ms, never past
// the deadline. A plain value; not thread-safe.
#pragma once

#include <algorithm>
#include <chrono>
#include <thread>

#include <sotto/comm/deadline.h>

namespace sotto::internal {

class Backoff {
 public:
  explicit Backoff(Deadline deadline) : deadline_(deadline) {}

  /// Sleeps; false at once when the deadline is over.
  bool wait() {
    if (deadline_.expired()) {
      return false;
    }
    std::this_thread::sleep_for(std::min<Deadline::Clock::duration>(pause_, deadline_.left()));
    pause_ = std::min(2 * pause_, kLongest);
    return true;
  }

 private:
  static constexpr std::chrono::milliseconds kLongest{20};

  Deadline deadline_;
  std::chrono::milliseconds pause_{1};
};

}  // namespace sotto::internal
