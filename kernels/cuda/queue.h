// A stream of sotto's own, and what a host that works through one needs: copies, waits, faults.
//
// Thread safety: one thread at a time, but for sound() and status(), which any may ask. Ownership:
// owns its stream; everything on it must be done or of no more use when the queue goes. Where the
// device refuses anything, that is kept as the queue's status, and whatever comes later is
// worthless. Waits have a deadline: one that passes is such a fault, and from then on whatever
// would wait for the device is left undone, giving its memory back among it.
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
  /// As long as a node waits for a peer that says nothing, unless told otherwise.
  static constexpr double kPatienceS = 60;

  /// On the calling thread's device; each wait may take so many seconds. Throws Error where none
  /// can be used, and for a patience that is not positive.
  explicit Queue(double patience_s = kPatienceS);
  ~Queue();
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;

  Stream stream() const { return stream_; }
  /// Makes the device that of the calling thread, which launches and allocates on it afterwards.
  void enter();
  /// What is put here from now on begins when what is on `other` now is done. The thread's device
  /// is this one until lead(), and an error of CUDA's that it has not asked for is dropped.
  void follow(Stream other);
  /// What is put on `other` from now on begins when what is here now is done. The thread has again
  /// the device that it had before follow().
  void lead(Stream other);
  /// Whether kernels of this device may work on what lies there.
  bool reaches(const void* at);

  /// Zeroed, pinned memory of the host, or pageable where CUDA has no other. It must go before the
  /// queue; where that hung, it stays for good.
  std::shared_ptr<std::byte> host_memory(std::size_t bytes);
  /// Puts a copy here, in any direction. Bytes of the host that are copied from may be reused after
  /// wait(), and those copied to are there after wait(): that pageable bytes are taken before this
  /// returns is nothing that CUDA promises. Pageable bytes are copied when all before is done: the
  /// runtime would wait without a deadline.
  void copy(std::span<const std::byte> from, std::byte* to);
  /// Copies at most kMostAnswer bytes of the device to the host and waits for them, with all that
  /// was put here before. False where the device is in fault: `to` is then as it was.
  bool fetch(std::span<const std::byte> from, std::span<std::byte> to);
  /// Waits until all is done, or for as long as it may.
  void wait();
  /// Waits as well, and leaves the thread its device: for those who give memory of this queue back.
  /// False where that must not be.
  bool settle();
  /// A wait took longer. The device may still touch all that was ever put here: nothing of it may
  /// be given back.
  bool hung() const { return hung_.raised(); }

  /// Keeps what has gone wrong elsewhere, unless something has already.
  void fail(const Status& status);
  /// Nothing has gone wrong so far, as far as it is known.
  bool sound() const { return !failed_.raised(); }
  /// What has gone wrong first, Fault::io.
  Status status() const;

 private:
  void put_copy(std::span<const std::byte> from, void* to);

  struct State;  // what the runtime gives it, and what it is told

  Stream stream_ = nullptr;
  std::unique_ptr<State> state_;
  SharedFlag failed_;
  SharedFlag hung_;
};

}  // namespace sotto::cuda
