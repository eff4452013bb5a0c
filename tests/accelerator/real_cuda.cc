// device.h on a real device.
#include <cuda_runtime_api.h>

#include <utility>

#include <doctest/doctest.h>

#include "accelerator/device.h"

#include <sotto/kernels/cuda/memory.h>

namespace sotto::test {
namespace {

/// A kernel of the caller's, which the host computes on copies.
struct Work {
  std::function<void(std::span<const float>, std::span<float>)> kernel;
  std::span<float> in;
  std::span<float> out;
};

void expect(cudaError_t error) { REQUIRE_MESSAGE(error == cudaSuccess, cudaGetErrorString(error)); }

}  // namespace

cuda::Stream make_stream() {
  cudaStream_t stream = nullptr;
  expect(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  return stream;
}

void finish(cuda::Stream stream) { expect(cudaStreamSynchronize(stream)); }

void destroy(cuda::Stream stream) { expect(cudaStreamDestroy(stream)); }

DeviceFloats::DeviceFloats(std::size_t count) {
  cuda::Memory memory(count * sizeof(float));
  expect(cudaMemset(memory.bytes().data(), 0xFF, memory.bytes().size()));
  expect(cudaDeviceSynchronize());
  there_ = memory.as<float>(0, count);
  memory.detach();
}

DeviceFloats::~DeviceFloats() { const cuda::Memory freed(std::as_writable_bytes(there_)); }

std::vector<float> DeviceFloats::read() const {
  std::vector<float> here(there_.size());
  cuda::copy_to_host(std::as_bytes(there_), std::as_writable_bytes(std::span(here)));
  return here;
}

void DeviceFloats::write(std::span<const float> values) const {
  cuda::copy_to_device(std::as_bytes(values), std::as_writable_bytes(there_));
}

void DeviceFloats::compute(std::span<const float> from,
                           std::function<void(std::span<const float>, std::span<float>)> kernel,
                           cuda::Stream stream) const {
  // Copies to and from pinned memory and the host's work between them, all on the stream.
  float* pinned = nullptr;
  expect(cudaHostAlloc(reinterpret_cast<void**>(&pinned),
                       (from.size() + there_.size()) * sizeof(float), cudaHostAllocDefault));
  auto* work =
      new Work{std::move(kernel), {pinned, from.size()}, {pinned + from.size(), there_.size()}};
  expect(cudaMemcpyAsync(pinned, from.data(), from.size_bytes(), cudaMemcpyDefault, stream));
  expect(cudaLaunchHostFunc(
      stream,
      [](void* given) {
        const auto* there = static_cast<const Work*>(given);
        there->kernel(there->in, there->out);
      },
      work));
  expect(cudaMemcpyAsync(there_.data(), work->out.data(), there_.size_bytes(), cudaMemcpyDefault,
                         stream));
  // Both stay until the program ends: nobody waits here.
}

}  // namespace sotto::test
