#include <sotto/kernels/cuda/queue.h>

#include <cuda_runtime_api.h>

#include <cstring>
#include <mutex>
#include <string>

#include <sotto/base/check.h>
#include <sotto/base/error.h>

namespace sotto::cuda {
namespace {

Status told(cudaError_t error, const char* what) {
  if (error == cudaSuccess) {
    return {};
  }
  static_cast<void>(cudaGetLastError());  // it is told here
  return {Fault::io, std::string("CUDA, ") + what + ": " + cudaGetErrorString(error)};
}

void expect(cudaError_t error, const char* what) {
  if (Status status = told(error, what); !status) {
    throw Error(status.message());
  }
}

}  // namespace

struct Queue::State {
  State() {
    expect(cudaHostAlloc(&answer, kMostAnswer, cudaHostAllocDefault), "allocating pinned memory");
    if (const cudaError_t error = cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
        error != cudaSuccess) {
      static_cast<void>(cudaFreeHost(answer));
      expect(error, "creating an event");
    }
  }
  ~State() {
    static_cast<void>(cudaEventDestroy(event));
    static_cast<void>(cudaFreeHost(answer));
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  void* answer = nullptr;
  cudaEvent_t event = nullptr;
  int device = 0;
  int callers_device = 0;
  std::mutex mutex;
  Status status;  ///< under the mutex
};

Queue::Queue() {
  if (Status status = device_status(); !status) {
    throw Error(status.message());
  }
  state_ = std::make_unique<State>();
  expect(cudaGetDevice(&state_->device), "finding a device");
  cudaStream_t stream = nullptr;
  int least = 0;
  int greatest = 0;
  expect(cudaDeviceGetStreamPriorityRange(&least, &greatest), "asking for priorities");
  // Not one that waits for the default stream: the caller's own work goes on beside it. Its kernels
  // are short, and neighbours wait for them.
  expect(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, greatest),
         "creating a stream");
  stream_ = stream;
}

Queue::~Queue() {
  static_cast<void>(cudaStreamSynchronize(stream_));
  static_cast<void>(cudaStreamDestroy(stream_));
}

void Queue::enter() { fail(told(cudaSetDevice(state_->device), "choosing a device")); }

void Queue::follow(Stream other) {
  static_cast<void>(cudaGetLastError());  // of the caller, not of work here
  fail(told(cudaGetDevice(&state_->callers_device), "finding a device"));
  enter();
  fail(told(cudaEventRecord(state_->event, other), "recording an event"));
  fail(told(cudaStreamWaitEvent(stream_, state_->event, 0), "waiting for an event"));
}

void Queue::lead(Stream other) {
  enter();
  fail(take_fault());
  fail(told(cudaEventRecord(state_->event, stream_), "recording an event"));
  fail(told(cudaStreamWaitEvent(other, state_->event, 0), "waiting for an event"));
  fail(told(cudaSetDevice(state_->callers_device), "choosing a device"));
}

bool Queue::reaches(const void* at) {
  cudaPointerAttributes attributes{};
  if (cudaPointerGetAttributes(&attributes, at) != cudaSuccess) {
    static_cast<void>(cudaGetLastError());
    return false;
  }
  return attributes.type == cudaMemoryTypeManaged ||
         (attributes.type == cudaMemoryTypeDevice && attributes.device == state_->device);
}

void Queue::copy(std::span<const std::byte> from, std::byte* to) {
  if (from.empty()) {
    return;
  }
  enter();
  fail(told(cudaMemcpyAsync(to, from.data(), from.size(), cudaMemcpyDefault, stream_), "copying"));
}

bool Queue::fetch(std::span<const std::byte> from, std::span<std::byte> to) {
  check(from.size() == to.size() && to.size() <= kMostAnswer, "fetch: a short answer");
  copy(from, static_cast<std::byte*>(state_->answer));
  wait();
  if (!sound()) {
    return false;
  }
  std::memcpy(to.data(), state_->answer, to.size());
  return true;
}

void Queue::wait() {
  enter();
  fail(told(cudaStreamSynchronize(stream_), "waiting"));
  fail(take_fault());
}

Status Queue::status() const {
  const std::lock_guard lock(state_->mutex);
  return state_->status;
}

void Queue::fail(const Status& status) {
  if (status.ok()) {
    return;
  }
  const std::lock_guard lock(state_->mutex);
  if (state_->status.ok()) {
    state_->status = status;
  }
  failed_.raise();
}

}  // namespace sotto::cuda
