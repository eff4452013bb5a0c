// A flag that any thread may raise and that is read when they are done, for those who work in
// pieces (workers.h) and know of no threads. Thread safety: any.
#pragma once

#include <atomic>

namespace sotto {

class SharedFlag {
 public:
  /// Orders nothing else: who reads the flag has waited for those who raise it.
  void raise() { raised_.store(true, std::memory_order_relaxed); }
  bool raised() const { return raised_.load(std::memory_order_relaxed); }

 private:
  std::atomic<bool> raised_{false};
};

}  // namespace sotto
