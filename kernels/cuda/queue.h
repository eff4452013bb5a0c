// A stream of sotto's own, and what a host that works through one needs: copies, waits, faults.
//
// Thread safety: one thread at a time, but for sound() and status(), which any may ask, and for
// follow() and lead(), which another may call meanwhile. Ownership: owns its
// stream; everything on it must be done or of no more use when the queue goes. Where the device
// refuses anything, that is kept as the queue's status, and whatever comes later is worthless.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include <sotto/base/shared_flag.h>
#include <sotto/base/status.h>
#include <sotto/kernels/cuda/stream.h>

namespace sotto::cuda {

class Queue {
 public:
  /// The longest answer.
  static constexpr std::size_t kMostAnswer = 64;

  /// On the calling thread's device. Throws Error where none can be used.
  Queue();
  ~Queue();
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;

  Stream stream() const { return stream_; }
  /// Makes the device that of the calling thread, which launches and allocates on it afterwards.
  void enter();
  /// What is put here from now on begins when what is on `other` now is done.
  void follow(Stream other);
  /// What is put on `other` from now on begins when what is here now is done.
  void lead(Stream other);

  /// Puts a copy here, in any direction; one side may be any memory of the host. Bytes of the host
  /// that are copied from may be reused at once, and those copied to are there after wait().
  void copy(std::span<const std::byte> from, std::byte* to);
  /// Copies at most kMostAnswer bytes of the device to the host and waits for them, with all that
  /// was put here before. False where the device is in fault: `to` is then as it was.
  bool fetch(std::span<const std::byte> from, std::span<std::byte> to);
  /// Waits until all is done.
  void wait();

  /// Keeps what has gone wrong elsewhere, unless something has already.
  void fail(const Status& status);
  /// Nothing has gone wrong so far, as far as it is known.
  bool sound() const { return !failed_.raised(); }
  /// What has gone wrong first, Fault::io.
  Status status() const;

 private:
  struct State;

  Stream stream_ = nullptr;
  int device_ = 0;
  std::unique_ptr<State> state_;
  SharedFlag failed_;
};

}  // namespace sotto::cuda
