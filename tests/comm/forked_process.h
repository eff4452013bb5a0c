// A process of a test's own, which the test can stop and kill.
#pragma once

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

#include <doctest/doctest.h>

namespace sotto::test {

class ForkedProcess {
 public:
  /// Runs `act` in the new process, which then ends. Fork before there are threads.
  explicit ForkedProcess(const std::function<void()>& act) : pid_(::fork()) {
    REQUIRE(pid_ >= 0);
    if (pid_ != 0) {
      return;
    }
    try {
      act();
    } catch (...) {
    }
    ::_exit(1);
  }
  ~ForkedProcess() { kill(SIGKILL); }
  ForkedProcess(const ForkedProcess&) = delete;
  ForkedProcess& operator=(const ForkedProcess&) = delete;

  void kill(int signal) {
    if (pid_ > 0) {
      ::kill(pid_, signal);
      if (signal == SIGKILL) {
        ::waitpid(pid_, nullptr, 0);
        pid_ = 0;
      }
    }
  }

 private:
  pid_t pid_;
};

}  // namespace sotto::test
