// The threads of a block and what they share, on a host and on the device.
//
// A block's work is a sequence of `each`: every thread does its part, and what one `each` wrote the
// next one may read, whichever thread wrote it. Nothing else passes between threads, so that a
// host, which runs them one after the other, computes what the device does.
#pragma once

#include <cstdint>

#include <sotto/kernels/host_device.h>

namespace sotto::cuda {

/// The most threads that a block of these kernels has.
inline constexpr std::uint32_t kMostThreads = 256;
/// Threads that the device runs in step.
inline constexpr std::uint32_t kWarp = 32;

class HostBlock {
 public:
  explicit HostBlock(std::uint32_t threads) : threads_(threads) {}

  std::uint32_t threads() const { return threads_; }
  template <typename Work>
  void each(const Work& work) const {
    for (std::uint32_t thread = 0; thread < threads_; ++thread) {
      work(thread);
    }
  }

 private:
  std::uint32_t threads_;
};

#ifdef __CUDACC__
/// The running block. All of its threads call `each` together.
class DeviceBlock {
 public:
  __device__ __forceinline__ std::uint32_t threads() const { return blockDim.x; }
  template <typename Work>
  __device__ __forceinline__ void each(const Work& work) const {
    work(threadIdx.x);
    __syncthreads();
  }
};
#endif

/// *where ← *where + more, from any thread.
SOTTO_HOST_DEVICE void add_to(std::uint64_t* where, std::uint64_t more) {
#ifdef __CUDA_ARCH__
  atomicAdd(reinterpret_cast<unsigned long long*>(where), static_cast<unsigned long long>(more));
#else
  *where += more;
#endif
}

/// *where ← min(*where, candidate), from any thread.
SOTTO_HOST_DEVICE void lower_to(std::uint64_t* where, std::uint64_t candidate) {
#ifdef __CUDA_ARCH__
  atomicMin(reinterpret_cast<unsigned long long*>(where),
            static_cast<unsigned long long>(candidate));
#else
  *where = candidate < *where ? candidate : *where;
#endif
}

/// *where ← *where + more, from any thread.
SOTTO_HOST_DEVICE void add_to(std::uint32_t* where, std::uint32_t more) {
#ifdef __CUDA_ARCH__
  atomicAdd(where, more);
#else
  *where += more;
#endif
}

}  // namespace sotto::cuda
