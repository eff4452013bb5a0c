// A program that runs beside us, seen from outside: how far it says that it has come and, when it
// is a job of local nodes, what the system says about each of their processes. Linux only (/proc).
// One thread at a time.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include <sotto/comm/deadline.h>
#include <sotto/console/child.h>

namespace sotto::bench {

/// A program that was started, and ends with the object.
class RunningJob {
 public:
  /// Starts a program (a path and its arguments). Throws std::runtime_error when it
  /// cannot.
  explicit RunningJob(const std::vector<std::string>& words);
  /// Asks the program to end, and waits until it is gone.
  ~RunningJob();
  RunningJob(const RunningJob&) = delete;
  RunningJob& operator=(const RunningJob&) = delete;

  /// Waits for `lines` lines on its standard output. Returns the seconds since the start. Throws
  /// std::runtime_error with what it said when it ends before, or says nothing until the deadline.
  double wait_for_lines(int lines, Deadline deadline);
  /// What the program has said by then.
  const std::string& output() const { return said_; }
  /// The processes that the program has forked.
  std::vector<pid_t> nodes() const;

 private:
  Deadline::Clock::time_point start_;
  console::Child child_;
  std::string said_;
};

/// TCP connections of a process that are established.
int connections_of(pid_t process);
/// Memory that is this process's alone: what it shares with its parent since the fork is not
/// counted. In bytes.
std::uint64_t private_bytes_of(pid_t process);

}  // namespace sotto::bench
