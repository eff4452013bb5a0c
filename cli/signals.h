// Ctrl-C as a flag: after catch_stop_signals, SIGINT, SIGTERM and SIGHUP set stop_requested instead
// of ending the process; a second one ends it at once. One per process.
#pragma once

#include <atomic>

namespace sotto::cli {

const std::atomic<bool>& stop_requested();
/// The signal that came last; 0: none.
int stop_signal();
/// The first signal writes `notice`, which must live as long as the process, to standard error.
void catch_stop_signals(const char* notice = nullptr);

}  // namespace sotto::cli
