#include "signals.h"

#include <csignal>

namespace sotto::cli {
namespace {

/// A signal handler reaches nothing but a global.
std::atomic<bool> stop{false};
static_assert(std::atomic<bool>::is_always_lock_free);

void on_signal(int signal) {
  stop = true;
  ::signal(signal, SIG_DFL);
}

}  // namespace

const std::atomic<bool>& stop_requested() { return stop; }

void catch_stop_signals() {
  struct sigaction action {};
  action.sa_handler = on_signal;
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    ::sigaction(signal, &action, nullptr);
  }
}

}  // namespace sotto::cli
