// Ctrl-C as a flag: after catch_stop_signals, SIGINT, SIGTERM and SIGHUP set stop_requested instead
// of ending the process; a second one ends it at once. One per process.
#pragma once

#include <atomic>

namespace sotto::cli {

const std::atomic<bool>& stop_requested();
void catch_stop_signals();

}  // namespace sotto::cli
