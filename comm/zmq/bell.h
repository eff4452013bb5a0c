// Wakes a thread that waits in zmq_poll, from another.
//
// Thread safety: ring() from any thread, the rest from the one that waits. Ownership: its
// descriptor.
#pragma once

#include <sys/eventfd.h>
#include <unistd.h>

#include <zmq.hpp>

namespace sotto::internal {

class Bell {
 public:
  /// Throws zmq::error_t when the system has no descriptor left.
  Bell() : descriptor_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (descriptor_ < 0) {
      throw zmq::error_t();
    }
  }
  ~Bell() { ::close(descriptor_); }
  Bell(const Bell&) = delete;
  Bell& operator=(const Bell&) = delete;

  void ring() { (void)::eventfd_write(descriptor_, 1); }
  /// Takes back all rings so far; true when there was one.
  bool hush() {
    eventfd_t rings = 0;
    return ::eventfd_read(descriptor_, &rings) == 0;
  }
  /// Becomes readable with a ring.
  int descriptor() const { return descriptor_; }

 private:
  int descriptor_;
};

}  // namespace sotto::internal
