// Starts the operations of a node, all on the I/O thread of its Gloo device.
//
// While another thread is at work on a connection, Gloo's I/O thread leaves what has come in on it
// where it is, and asks the kernel for it again at once: it spins until the other is done, which
// takes a write's time, or a time slice where processors are few. So that it never has to, sends
// and receives are started where events are handled, between two of them.
//
// Thread safety: Starter's add; the others one thread. Ownership: shares the device and the
// operations' buffers; connections and waiters must stay while it is attached.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include <gloo/transport/tcp/device.h>

#include "../internal/wakeup.h"
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
  /// Failures to start are reported to `reports`. Throws Shortage when the system has no descriptor
  /// left.
  explicit Starter(Reports& reports);
  /// Requires that it is not attached.
  ~Starter() override;
  Starter(const Starter&) = delete;
  Starter& operator=(const Starter&) = delete;

  /// Begins to start operations on the device.
  void attach(std::shared_ptr<gloo::transport::tcp::Device> device);
  /// Returns once all that were added have started, or failed to. That takes no longer than writing
  /// what the system has room for; a second is its limit.
  void flush();
  /// Flushes; what has not started then never will.
  void detach();

  /// Starts after all that were added before.
  void add(Start start);

 private:
  void handleEvents(int events) override;
  void run(Start& start);

  std::shared_ptr<gloo::transport::tcp::Device> device_;
  Reports& reports_;
  Wakeup wakeup_;  ///< readable while an operation is due
  std::mutex mutex_;
  std::condition_variable started_;
  std::vector<Start> due_;
  bool starting_ = false;
};

}  // namespace sotto::internal
