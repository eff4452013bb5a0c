// The store through which the processes of a local job meet. A server process keeps the values in
// memory, and setting a key wakes the processes that wait for it. Without polling and without
// files, many nodes can start at once.
//
// The process is forked; a caller must hold no threads yet. The server ends with the last process
// that could still ask it. POSIX (Linux) only.
#pragma once

#include <memory>

#include <sotto/comm/helper_process.h>
#include <sotto/comm/store.h>

namespace sotto {

class LocalStore {
 public:
  LocalStore();

  /// Opens the store in this process, which is this object's or a fork of it; thread-safe. The
  /// object must outlive it. Requests of a process that gave none become Fault::io.
  std::shared_ptr<Store> open() const;

 private:
  HelperProcess helper_;
};

}  // namespace sotto
