// Streams and vectors of a test's own on a CUDA device: a real one (real_cuda.cc), or one that is
// none (fake_cuda.h).
//
// Thread safety: any thread.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "support/skip.h"

#include <sotto/kernels/cuda/stream.h>

namespace sotto::test {

/// A stream of the caller's.
cuda::Stream make_stream();
/// Waits until all that is on it is done.
void finish(cuda::Stream stream);
void destroy(cuda::Stream stream);

/// Floats on the device.
class DeviceFloats {
 public:
  explicit DeviceFloats(std::size_t count);
  ~DeviceFloats();
  DeviceFloats(const DeviceFloats&) = delete;
  DeviceFloats& operator=(const DeviceFloats&) = delete;

  std::span<float> there() const { return there_; }
  /// What they are now; nothing is waited for.
  std::vector<float> read() const;
  /// As a kernel of the caller's, which sees the floats of `from` and writes these.
  void compute(std::span<const float> from,
               std::function<void(std::span<const float>, std::span<float>)> kernel,
               cuda::Stream stream) const;
  /// At once.
  void write(std::span<const float> values) const;

 private:
  std::span<float> there_;
};

/// Leaves the test, as skipped, where there is no device.
#define SOTTO_NEEDS_DEVICE()                                       \
  if (const Status status = cuda::device_status(); !status.ok()) { \
    SOTTO_SKIP(status.message());                                  \
  }

}  // namespace sotto::test
