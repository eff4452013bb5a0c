#include <sotto/console/signals.h>

#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

namespace sotto::console {
namespace {

/// A signal handler reaches nothing but globals.
std::atomic<bool> stop{false};
std::atomic<bool> haste{false};
std::atomic<SecondSignal> of_second{SecondSignal::ends};
std::atomic<int> last_signal{0};
std::atomic<const char*> notice_of_first{nullptr};
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<int>::is_always_lock_free &&
              std::atomic<SecondSignal>::is_always_lock_free &&
              std::atomic<const char*>::is_always_lock_free);

void on_signal(int signal) {
  const int before = errno;  // which what is interrupted may be about to read
  last_signal = signal;
  if (const char* notice = notice_of_first; notice != nullptr && !stop) {
    [[maybe_unused]] const auto written = ::write(STDERR_FILENO, notice, std::strlen(notice));
  }
  const bool hastens = of_second == SecondSignal::hastens;
  const bool second = stop.exchange(true);
  haste = haste || (second && hastens);
  if (hastens ? second : of_second == SecondSignal::ends) {
    ::signal(signal, SIG_DFL);  // the next one ends the process
  }
  errno = before;
}

}  // namespace

const std::atomic<bool>& stop_requested() { return stop; }

const std::atomic<bool>& haste_requested() { return haste; }

StopRequest stop_request() {
  return [] { return stop.load(); };
}

std::string interruption(const Status& status) {
  // A node's status begins with "node 3: ".
  const bool waited = status.fault() == Fault::stopped && !status.message().ends_with(kStopped);
  return waited ? "interrupted: " + status.message() : "interrupted";
}

int stop_signal() { return last_signal; }

void catch_stop_signals(const char* notice, SecondSignal second) {
  notice_of_first = notice;
  of_second = second;
  struct sigaction action {};
  action.sa_handler = on_signal;
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    ::sigaction(signal, &action, nullptr);
  }
}

void ignore_hangup() { std::signal(SIGHUP, SIG_IGN); }

}  // namespace sotto::console
