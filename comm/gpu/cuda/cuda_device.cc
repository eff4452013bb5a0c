// The device through CUDA's runtime.
#include <cuda_runtime_api.h>

#include <fmt/format.h>

#include "../device.h"

namespace sotto::internal {
namespace {

Status told(cudaError_t error, std::string_view doing) {
  if (error == cudaSuccess) {
    return {};
  }
  (void)cudaGetLastError();  // it is told here, and not once more
  return {Fault::io, fmt::format("CUDA, {}: {}", doing, cudaGetErrorString(error))};
}

class CudaDevice final : public Device {
 public:
  explicit CudaDevice(int number) : number_(number) {}

  Status use() override { return told(cudaSetDevice(number_), "choosing the device"); }

  Result<std::span<std::byte>> allocate(DeviceRoom room, std::size_t bytes) override {
    void* at = nullptr;
    cudaError_t error = room == DeviceRoom::pinned ? cudaHostAlloc(&at, bytes, cudaHostAllocDefault)
                                                   : cudaMalloc(&at, bytes);
    if (error == cudaSuccess && room == DeviceRoom::device) {
      error = cudaMemset(at, 0, bytes);
      if (error == cudaSuccess) {
        // It may return before the zeros are there, and streams of make_stream() do not wait for
        // the default one: a first copy could be overwritten.
        error = cudaStreamSynchronize(nullptr);
      }
      if (error != cudaSuccess) {
        (void)cudaFree(at);
      }
    }
    if (auto status = told(error, fmt::format("allocating {} bytes", bytes)); !status.ok()) {
      return status;
    }
    return std::span(static_cast<std::byte*>(at), bytes);
  }
  void release(DeviceRoom room, std::span<std::byte> memory) override {
    static_cast<void>(room == DeviceRoom::pinned ? cudaFreeHost(memory.data())
                                                 : cudaFree(memory.data()));
  }
  Result<bool> holds(const std::byte* at) const override {
    cudaPointerAttributes attributes{};
    if (auto status = told(cudaPointerGetAttributes(&attributes, at), "asking where memory lies");
        !status.ok()) {
      return status;
    }
    return attributes.type == cudaMemoryTypeDevice;
  }

  Result<DeviceStream> make_stream() override {
    cudaStream_t stream = nullptr;
    // Not behind the default stream, on which programs put their own work.
    if (auto status = told(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "a stream");
        !status.ok()) {
      return status;
    }
    return stream;
  }
  void destroy(DeviceStream stream) override { static_cast<void>(cudaStreamDestroy(stream)); }
  Result<DeviceEvent> make_event() override {
    cudaEvent_t event = nullptr;
    if (auto status = told(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "an event");
        !status.ok()) {
      return status;
    }
    return event;
  }
  void destroy(DeviceEvent event) override { static_cast<void>(cudaEventDestroy(event)); }

  Status copy(std::span<const std::byte> from, std::byte* to, DeviceStream stream) override {
    return told(cudaMemcpyAsync(to, from.data(), from.size(), cudaMemcpyDefault, stream),
                "copying");
  }
  Status record(DeviceEvent event, DeviceStream stream) override {
    return told(cudaEventRecord(event, stream), "marking a stream");
  }
  Result<bool> passed(DeviceEvent event) override {
    const cudaError_t error = cudaEventQuery(event);
    if (error == cudaErrorNotReady) {
      return false;
    }
    if (auto status = told(error, "work on a stream"); !status.ok()) {
      return status;
    }
    return true;
  }

 private:
  const int number_;
};

}  // namespace

int count_cuda_devices() {
  int count = 0;
  return told(cudaGetDeviceCount(&count), "counting devices").ok() ? count : 0;
}

Result<std::shared_ptr<Device>> make_cuda_device(std::optional<Rank> rank) {
  int count = 0;
  if (auto status = told(cudaGetDeviceCount(&count), "no device can be used"); !status.ok()) {
    return status;
  }
  if (count == 0) {
    return Status(Fault::io, "CUDA finds no device");
  }
  int number = 0;
  if (rank) {
    number = *rank % count;
  } else if (auto status = told(cudaGetDevice(&number), "the thread's device"); !status.ok()) {
    return status;
  }
  std::shared_ptr<Device> device = std::make_shared<CudaDevice>(number);
  if (auto status = device->use(); !status.ok()) {
    return status;
  }
  return device;
}

}  // namespace sotto::internal
