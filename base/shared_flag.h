// A flag that any thread may raise and that is read when all are done, for code that runs in pieces
// (workers.h). Thread safety: any.
#pragma once

#include <atomic>

namespace sotto {

class SharedFlag {
 public:
  /// Orders no other memory access: a reader first waits for the threads that may raise the flag.
  void raise() { raised_.store(true, std::memory_order_relaxed); }
  bool raised() const { return raised_.load(std::memory_order_relaxed); }

 private:
  std::atomic<bool> raised_{false};
};

}  // namespace sotto
