// The store through which the processes of a local job meet: a process of its own keeps the values
// in memory, and who waits for a key is woken by who sets it. Nothing is looked for again and
// again, and no file is written, so that many nodes that start at once do not stand in each other's
// way.
//
// The process is forked; a caller must hold no threads yet. It ends with the last of those who
// could still ask it. POSIX (Linux) only.
#pragma once

#include <memory>

#include <sotto/comm/helper_process.h>
#include <sotto/comm/store.h>

namespace sotto {

class LocalStore {
 public:
  LocalStore();

  /// For use in this process, which is this object's or a fork of it; thread-safe. The object must
  /// outlive it. Requests of a process that gave none become Fault::io.
  std::shared_ptr<Store> open() const;

 private:
  HelperProcess helper_;
};

}  // namespace sotto
