// Launching kernels, and what the compiler must know of them. Only nvcc compiles this.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

#include <sotto/base/check.h>
#include <sotto/kernels/cuda/block.h>
#include <sotto/kernels/cuda/bytes.h>

namespace sotto::cuda {

/// A block's own memory, as long as its launch says.
inline __device__ std::byte* block_memory() {
  extern __shared__ FourWords memory[];
  return reinterpret_cast<std::byte*>(memory);
}

/// Shared memory that a block may have on every device without asking.
inline constexpr std::size_t kMostBlockMemory = std::size_t{48} << 10U;

inline unsigned launch_blocks(std::size_t blocks) {
  constexpr std::size_t kMostBlocks = 0x7FFFFFFF;
  check(blocks <= kMostBlocks, "a launch of too many blocks");
  return static_cast<unsigned>(blocks);
}

inline std::size_t pieces_of(std::size_t count, std::size_t length) {
  return count / length + (count % length != 0 ? 1 : 0);
}

/// Asks for no wait, unlike a copy.
inline void set_bytes(void* at, int value, std::size_t count, cudaStream_t stream) {
  // A failure stays the thread's last error, which take_fault reads.
  (void)cudaMemsetAsync(at, value, count, stream);
}

}  // namespace sotto::cuda
