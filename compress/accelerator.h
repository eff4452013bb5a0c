// An accelerator holds a node's vectors in its own memory and operates on them: a GPU, as
// algorithms see it.
//
// The model, its gradients and all state of an algorithm then lie in the accelerator's memory;
// encodings lie in the host's, in frames. The algorithm's code does not change: it touches vectors
// through `ops` and through compressors that `adopt` has made.
//
// Thread safety: one thread at a time, but for status() and reaches(). So it serves one optimizer.
// Ownership: it must outlive the vectors and compressors that it made.
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>

#include <sotto/base/status.h>
#include <sotto/compress/compressor.h>
#include <sotto/kernels/ops.h>

namespace sotto {

class Accelerator {
 public:
  virtual ~Accelerator() = default;

  /// "CUDA"
  virtual std::string_view name() const = 0;
  /// The vector operations for this memory.
  virtual const Ops& ops() const = 0;
  /// `compressor`, one of the host's, for vectors that lie there: the same encodings, byte for
  /// byte. Throws Error for a family that only hosts have.
  virtual std::unique_ptr<Compressor> adopt(const Compressor& compressor) const = 0;
  /// Zeroed memory of the host, between which and the vectors' memory copies go straight: for
  /// frames. Goes before the accelerator.
  virtual std::shared_ptr<std::byte> frame_memory(std::size_t bytes) const = 0;
  /// Whether the operations can work on memory at this address.
  virtual bool reaches(const float* at) const = 0;

  /// Work on the vectors begins after what the caller has put on its own stream so far, for example
  /// a gradient. The call does not block.
  virtual void follow_caller() = 0;
  /// Work that the caller puts on its own stream from now on begins after the accelerator's work so
  /// far. Calls come in pairs, from one thread.
  virtual void lead_caller() = 0;
  /// Waits for all work; what went wrong, as status().
  virtual Status finish() = 0;
  /// Fault::io once anything failed there: all results since are worthless. From any thread.
  virtual Status status() const = 0;
};

/// Orders a scope's work on an accelerator with the caller's: it begins after what the caller has
/// enqueued, and what the caller enqueues later begins after it. Open it as late as possible, since
/// whatever is enqueued within waits for the caller's work too.
class AcceleratorScope {
 public:
  /// Null: no accelerator, and the scope does nothing.
  explicit AcceleratorScope(Accelerator* accelerator) : accelerator_(accelerator) {
    if (accelerator_ != nullptr) {
      accelerator_->follow_caller();
    }
  }
  ~AcceleratorScope() {
    if (accelerator_ != nullptr) {
      accelerator_->lead_caller();
    }
  }
  AcceleratorScope(const AcceleratorScope&) = delete;
  AcceleratorScope& operator=(const AcceleratorScope&) = delete;

 private:
  Accelerator* const accelerator_;
};

}  // namespace sotto
