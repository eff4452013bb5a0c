// A program that runs on a host of the emulated network, or on this one. It dies with the thread
// that started it, whatever happens to that. One thread at a time.
#pragma once

#include <sys/types.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include <sotto/comm/deadline.h>

#include "network_namespace.h"

namespace sotto::netlab {

class Child {
 public:
  /// Starts `words` (a path and its arguments) on the host `where` (null: this one) with the
  /// environment changed by `variables`: an empty value takes one away. What it prints goes into
  /// memory. Throws Error when it cannot start.
  Child(const NetworkNamespace* where, const std::vector<std::string>& words,
        const std::map<std::string, std::string>& variables);
  /// Kills it, if it still runs.
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  /// Its exit status, 128 + signal when one ended it; nothing while it runs.
  std::optional<int> ended();
  void signal(int number);
  /// What it has printed so far.
  std::string output() const;
  std::string errors() const;

 private:
  pid_t pid_ = -1;
  std::optional<int> status_;
  FileDescriptor output_;
  FileDescriptor errors_;
};

}  // namespace sotto::netlab
