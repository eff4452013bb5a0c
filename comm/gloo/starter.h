// Starts the operations of a node, all on the I/O thread of its Gloo device.
//
// While another thread is at work on a connection, Gloo's I/O thread leaves what has come in on it
// where it is, and asks the kernel for it again at once: it spins until the other is done, which
// takes a write's time, or a time slice where processors are few. So that it never has to, sends
// and receives are started where events are handled, between two of them.
//
// Thread safety: all members of Starter but construction and destruction. Ownership: shares the
// device and the operations' buffers; waiters and reports must outlive it, and so must connections.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include <gloo/transport/tcp/device.h>

#include "waiter.h"

namespace sotto::internal {

/// An operation to start.
struct Start {
  Rank peer = -1;
  std::uint64_t slot = 0;
  Operation operation;
  Waiter* waiter = nullptr;  ///< null: nobody waits
};

class Starter final : private gloo::transport::tcp::Handler {
 public:
  /// Failures to start are reported to `reports`. Throws std::exception when the system has no
  /// descriptor left.
  Starter(std::shared_ptr<gloo::transport::tcp::Device> device, Reports& reports);
  /// What has not started yet never will.
  ~Starter() override;
  Starter(const Starter&) = delete;
  Starter& operator=(const Starter&) = delete;

  /// Starts after all that were added before.
  void add(Start start);
  /// Returns once all have started, or at the deadline.
  void drain(Deadline deadline);

 private:
  void handleEvents(int events) override;
  void run(Start& start);

  const std::shared_ptr<gloo::transport::tcp::Device> device_;
  Reports& reports_;
  const int wake_;  ///< an eventfd
  std::mutex mutex_;
  std::condition_variable started_;
  std::vector<Start> due_;
  bool starting_ = false;
};

}  // namespace sotto::internal
