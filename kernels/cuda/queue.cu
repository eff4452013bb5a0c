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
  return {Fault::io, std::string("CUDA, ") + what + ": " + cudaGetErrorString(error)};
}

void expect(cudaError_t error, const char* what) {
  if (Status status = told(error, what); !status) {
    throw Error(status.message());
  }
}

}  // namespace

/// What the queue is told of the device, and by it.
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
  std::mutex mutex;
  Status status;  ///< under the mutex
};

Queue::Queue() {
  if (Status status = device_status(); !status) {
    throw Error(status.message());
  }
  expect(cudaGetDevice(&device_), "finding a device");
  state_ = std::make_unique<State>();
  cudaStream_t stream = nullptr;
  // Not one that waits for the default stream: the caller's own work goes on beside it.
  expect(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "creating a stream");
  stream_ = stream;
}

Queue::~Queue() {
  static_cast<void>(cudaStreamSynchronize(stream_));
  static_cast<void>(cudaStreamDestroy(stream_));
}

void Queue::enter() { fail(told(cudaSetDevice(device_), "choosing a device")); }

void Queue::follow(Stream other) {
  enter();
  fail(told(cudaEventRecord(state_->event, other), "recording an event"));
  fail(told(cudaStreamWaitEvent(stream_, state_->event, 0), "waiting for an event"));
}

void Queue::lead(Stream other) {
  enter();
  fail(told(cudaEventRecord(state_->event, stream_), "recording an event"));
  fail(told(cudaStreamWaitEvent(other, state_->event, 0), "waiting for an event"));
}

void Queue::copy(std::span<const std::byte> from, std::byte* to) {
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
