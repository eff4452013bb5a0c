// A program that runs beside us, on this host or on one of the emulated network. It ends with the
// thread that started it, whatever happens to that. Linux only. One thread at a time.
#pragma once

#include <sys/types.h>

#include <csignal>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <sotto/base/file_descriptor.h>
#include <sotto/comm/deadline.h>

namespace sotto::console {

/// How a Child is started.
struct ChildSetup {
  /// Changes of the environment: an empty value takes a variable away.
  std::map<std::string, std::string> variables = {};
  int network = -1;          ///< a network namespace to run in, as setns takes it; −1: ours
  std::string log = {};      ///< its errors go to the end of this file; empty: into memory
  bool own_group = false;    ///< Ctrl-C on the terminal is not for it
  int at_our_end = SIGKILL;  ///< the signal that it gets when the thread that started it ends
};

class Child {
 public:
  /// Starts `words` (a path and its arguments). What it prints goes into memory. Throws
  /// std::runtime_error when there cannot be another process; a program that is not there ends with
  /// status 127.
  explicit Child(const std::vector<std::string>& words, const ChildSetup& setup = {});
  /// Kills it, if it still runs.
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  pid_t number() const { return pid_; }
  /// Exit status of the program, or 128 + the signal that ended it; nothing while it runs.
  std::optional<int> ended();
  /// Waits for the program's end, however long that takes. Throws std::runtime_error where
  /// something else has waited for it.
  int wait();
  /// As ended(), once the program has ended or at the deadline.
  std::optional<int> wait_until(const Deadline& deadline);
  void signal(int number);
  /// What it has printed so far.
  std::string output() const;
  std::string errors() const;

 private:
  std::optional<int> look(int options);

  pid_t pid_ = -1;
  std::optional<int> status_;
  FileDescriptor output_;
  FileDescriptor errors_;
};

}  // namespace sotto::console
