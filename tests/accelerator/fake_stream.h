// What the fake device's operations are put on: fake_cuda.h.
#pragma once

#include <cstddef>
#include <functional>
#include <span>

#include <sotto/kernels/cuda/stream.h>

namespace sotto::test::fake_cuda {

/// Puts work on a stream.
void put(cuda::Stream stream, std::function<void()> work);
/// The memory at `at`, where work may use it. Ends the test for what is not the device's.
std::byte* reach(const std::byte* at);

template <typename T>
std::span<T> used(std::span<T> there) {
  if (there.empty()) {
    return {};
  }
  return {reinterpret_cast<T*>(reach(reinterpret_cast<const std::byte*>(there.data()))),
          there.size()};
}

template <typename T>
T* used(T* there) {
  return used(std::span<T>(there, 1)).data();
}

}  // namespace sotto::test::fake_cuda
