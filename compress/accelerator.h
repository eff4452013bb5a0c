// What works on a node's vectors where the host need not reach them: a GPU, as algorithms see it.
//
// The model, its gradients and all state of an algorithm then lie in the accelerator's memory; what
// is encoded of them lies with the host, in frames. An algorithm is the same object: it touches
// vectors through `ops` and through compressors that `adopt` has made.
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
  /// For the vectors that lie there.
  virtual const Ops& ops() const = 0;
  /// `compressor`, one of the host's, for vectors that lie there: the same encodings, byte for
  /// byte. Throws Error for a family that only hosts have.
  virtual std::unique_ptr<Compressor> adopt(const Compressor& compressor) const = 0;
  /// Zeroed memory of the host, between which and the vectors' memory copies go straight: for
  /// frames. Goes before the accelerator.
  virtual std::shared_ptr<std::byte> frame_memory(std::size_t bytes) const = 0;
  /// Whether its operations can work on what lies there.
  virtual bool reaches(const float* at) const = 0;

  /// Work on the vectors begins after what the caller has put on its own stream so far, a gradient
  /// say. Nobody waits.
  virtual void follow_caller() = 0;
  /// What the caller puts on its own stream from now on begins after the work so far. Calls come in
  /// pairs, from one thread.
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
  /// Null: there is no accelerator, and nothing to order.
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
