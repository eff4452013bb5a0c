// Memory of the device to work in, which grows when more is asked for than there is.
//
// Thread safety: one thread at a time. Owns its memory.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include <sotto/base/error.h>
#include <sotto/kernels/cuda/memory.h>
#include <sotto/kernels/cuda/queue.h>

namespace sotto::cuda {

class Workspace {
 public:
  /// At least so many bytes, at a multiple of 256; what they held is lost where they grow. None
  /// where there is no memory, and then the queue is in fault, or where it is already.
  std::span<std::byte> of(std::size_t bytes, Queue& queue) {
    if (!memory_ || memory_->bytes().size() < bytes) {
      queue.wait();  // what is there may be in use
      if (!queue.sound()) {
        return {};
      }
      memory_.reset();
      try {
        memory_.emplace(bytes);
      } catch (const Error& error) {
        queue.fail({Fault::io, error.what()});
        return {};
      }
    }
    return memory_->bytes();
  }
  /// Never gives it back: the device may still touch it (Queue::hung).
  void abandon() {
    if (memory_) {
      (void)memory_->detach();
    }
  }

 private:
  std::optional<Memory> memory_;
};

}  // namespace sotto::cuda
