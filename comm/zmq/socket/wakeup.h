// Wakes a thread that waits in zmq_poll, from another.
//
// Thread safety: signal() from any thread, the rest from the one that waits. Ownership: its
// descriptor.
#pragma once

#include <sys/eventfd.h>

#include <zmq.hpp>

#include <sotto/base/file_descriptor.h>

namespace sotto::internal {

class Wakeup {
 public:
  /// Throws zmq::error_t when the system has no descriptor left.
  Wakeup() : descriptor_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (!descriptor_) {
      throw zmq::error_t();
    }
  }

  void signal() { (void)::eventfd_write(descriptor_.get(), 1); }
  /// Takes back all signals so far; true when there was one.
  bool clear() {
    eventfd_t signals = 0;
    return ::eventfd_read(descriptor_.get(), &signals) == 0;
  }
  /// Becomes readable with a signal.
  int descriptor() const { return descriptor_.get(); }

 private:
  FileDescriptor descriptor_;
};

}  // namespace sotto::internal
