// Keeps SIGPIPE from this thread and from threads that it starts: Gloo writes to sockets whose peer
// may be gone without asking the kernel to spare it the signal. The process's own handling of the
// signal stays as it is.
//
// Thread safety: one object a thread. Ownership: restores the thread's signal mask.
#pragma once

#include <csignal>
#include <ctime>

namespace sotto::internal {

class SigpipeGuard {
 public:
  SigpipeGuard() {
    sigset_t pending;
    ::sigpending(&pending);
    was_pending_ = sigismember(&pending, SIGPIPE) == 1;
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    ::pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  ~SigpipeGuard() {
    // A signal that arose meanwhile is ours: take it before the mask is lifted.
    if (!was_pending_) {
      const timespec now{};
      while (::sigtimedwait(&pipe_, nullptr, &now) == SIGPIPE) {
      }
    }
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  SigpipeGuard(const SigpipeGuard&) = delete;
  SigpipeGuard& operator=(const SigpipeGuard&) = delete;

 private:
  sigset_t pipe_{};
  sigset_t before_{};
  bool was_pending_ = false;
};

}  // namespace sotto::internal
