// Wakes a thread that waits in poll, zmq_poll or epoll, from another.
//
// Thread safety: signal() from any thread, the rest from the one that waits. Ownership: its
// descriptor.
#pragma once

#include <sys/eventfd.h>

#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/base/file_descriptor.h>

namespace sotto::internal {

class Wakeup {
 public:
  /// Throws Shortage when the system has no descriptor left.
  Wakeup() : descriptor_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (!descriptor_) {
      throw Shortage(fmt::format("opening an event: {}", std::strerror(errno)));
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
