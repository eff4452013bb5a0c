// Ctrl-C as a flag: after catch_stop_signals, SIGINT, SIGTERM and SIGHUP set stop_requested instead
// of ending the process; what a second one does is chosen. One per process.
#pragma once

#include <atomic>
#include <string>

#include <sotto/base/status.h>
#include <sotto/comm/deadline.h>

namespace sotto::console {

const std::atomic<bool>& stop_requested();
/// Whether a second signal came, where that is to hasten.
const std::atomic<bool>& haste_requested();
/// What waits ask for stop_requested().
StopRequest stop_request();
/// The signal that came last; 0: none.
int stop_signal();
/// What is said of a command that was to end: "interrupted", and the wait that ended with it.
std::string interruption(const Status& status);
enum class SecondSignal {
  ends,     ///< the process, at once
  hastens,  ///< haste_requested(): whoever waits is to go at once; a third ends the process
  waits,    ///< ignored: child processes can get the same signal from their parent and from the
            ///< terminal
};
/// The first signal writes `notice`, which must live as long as the process, to standard error.
void catch_stop_signals(const char* notice = nullptr, SecondSignal second = SecondSignal::ends);
/// From now on SIGHUP does nothing: for a process that outlives its terminal, and whose log is
/// rotated by programs that send it.
void ignore_hangup();

}  // namespace sotto::console
