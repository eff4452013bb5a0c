// Ctrl-C as a flag: after catch_stop_signals, SIGINT, SIGTERM and SIGHUP set stop_requested instead
// of ending the process; a second one ends it at once, unless it is told not to. One per process.
#pragma once

#include <atomic>

namespace sotto::cli {

const std::atomic<bool>& stop_requested();
/// The signal that came last; 0: none.
int stop_signal();
enum class SecondSignal {
  ends,   ///< the process, at once
  waits,  ///< as the first: for a child, which may be sent one by its parent and by the group's
          ///< sender
};
/// The first signal writes `notice`, which must live as long as the process, to standard error.
void catch_stop_signals(const char* notice = nullptr, SecondSignal second = SecondSignal::ends);

}  // namespace sotto::cli
