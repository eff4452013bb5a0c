#include <sotto/kernels/cuda/memory.h>

#include <cuda_runtime_api.h>

#include <utility>

#include <sotto/base/check.h>
#include <sotto/base/error.h>

namespace sotto::cuda {
namespace {

void expect(cudaError_t error, const char* what) {
  if (error != cudaSuccess) {
    static_cast<void>(cudaGetLastError());  // it is told here
    throw Error(std::string("CUDA, ") + what + ": " + cudaGetErrorString(error));
  }
}

/// A point in a stream's work.
class Event {
 public:
  Event() { expect(cudaEventCreate(&event_), "creating an event"); }
  ~Event() { static_cast<void>(cudaEventDestroy(event_)); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  void record() { expect(cudaEventRecord(event_, nullptr), "recording an event"); }
  double seconds_since(const Event& start) {
    constexpr double kMillisecond = 1e-3;
    float elapsed = 0;
    expect(cudaEventSynchronize(event_), "waiting for an event");
    expect(cudaEventElapsedTime(&elapsed, start.event_, event_), "reading a clock");
    return kMillisecond * static_cast<double>(elapsed);
  }

 private:
  cudaEvent_t event_ = nullptr;
};

}  // namespace

Memory::Memory(std::size_t bytes) {
  void* at = nullptr;
  if (bytes > 0) {
    expect(cudaMalloc(&at, bytes), "allocating memory");
  }
  bytes_ = {static_cast<std::byte*>(at), bytes};
}

Memory::~Memory() { static_cast<void>(cudaFree(bytes_.data())); }

Memory::Memory(Memory&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}

void copy_to_device(std::span<const std::byte> from, std::span<std::byte> to) {
  check(from.size() == to.size(), "copy_to_device: lengths differ");
  expect(cudaMemcpy(to.data(), from.data(), from.size(), cudaMemcpyHostToDevice), "copying");
  expect(cudaStreamSynchronize(nullptr), "copying");  // a copy may return before it is there
}

void copy_to_host(std::span<const std::byte> from, std::span<std::byte> to) {
  check(from.size() == to.size(), "copy_to_host: lengths differ");
  expect(cudaMemcpy(to.data(), from.data(), from.size(), cudaMemcpyDeviceToHost), "copying");
}

void copy_within(std::span<const std::byte> from, std::span<std::byte> to, Stream stream) {
  check(from.size() == to.size(), "copy_within: lengths differ");
  expect(cudaMemcpyAsync(to.data(), from.data(), from.size(), cudaMemcpyDeviceToDevice, stream),
         "copying");
}

Status synchronize() {
  const cudaError_t error = cudaDeviceSynchronize();
  if (error != cudaSuccess) {
    return {Fault::io, std::string("CUDA: ") + cudaGetErrorString(error)};
  }
  return take_fault();
}

double seconds_on_device(const std::function<void()>& work) {
  Event start;
  Event end;
  start.record();
  work();
  end.record();
  return end.seconds_since(start);
}

std::string device_name() {
  int device = 0;
  cudaDeviceProp properties{};
  expect(cudaGetDevice(&device), "finding a device");
  expect(cudaGetDeviceProperties(&properties, device), "reading a device's properties");
  return properties.name;
}

}  // namespace sotto::cuda
