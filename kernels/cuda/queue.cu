#include <sotto/kernels/cuda/queue.h>

#include <cuda_runtime_api.h>

#include <chrono>
#include <cstring>
#include <mutex>
#include <string>
#include <thread>

#include <sotto/base/check.h>
#include <sotto/base/error.h>

namespace sotto::cuda {
namespace {

using std::chrono::steady_clock;

/// Most waits are short: for so long the device is asked without a pause, then in between.
constexpr std::chrono::microseconds kEager{200};
constexpr std::chrono::microseconds kPause{20};

Status told(cudaError_t error, const char* what) {
  if (error == cudaSuccess) {
    return {};
  }
  static_cast<void>(cudaGetLastError());  // it is told here
  return {Fault::io, std::string("CUDA, ") + what + ": " + cudaGetErrorString(error)};
}

/// Memory of the host that the device cannot copy by itself.
bool pageable(const void* at) {
  cudaPointerAttributes attributes{};
  if (cudaPointerGetAttributes(&attributes, at) != cudaSuccess) {
    static_cast<void>(cudaGetLastError());
    return true;
  }
  return attributes.type == cudaMemoryTypeUnregistered;
}

void expect(cudaError_t error, const char* what) {
  if (Status status = told(error, what); !status.ok()) {
    throw Error(status.message());
  }
}

}  // namespace

struct Queue::State {
  explicit State(double patience) : patience_s(patience) {
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

  const double patience_s;
  void* answer = nullptr;
  cudaEvent_t event = nullptr;
  int device = 0;
  int callers_device = 0;
  std::mutex mutex;
  Status status;  ///< under the mutex
};

Queue::Queue(double patience_s) {
  if (!(patience_s > 0)) {
    throw Error("the patience with a CUDA device: more than nothing is needed");
  }
  if (Status status = device_status(); !status.ok()) {
    throw Error(status.message());
  }
  state_ = std::make_unique<State>(patience_s);
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
  if (settle()) {
    static_cast<void>(cudaStreamDestroy(stream_));
  } else {
    static_cast<void>(state_.release());  // the device may still write there
  }
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
  if (!hung()) {  // the caller's work shall not wait for what is never done
    fail(told(cudaEventRecord(state_->event, stream_), "recording an event"));
    fail(told(cudaStreamWaitEvent(other, state_->event, 0), "waiting for an event"));
  }
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

std::shared_ptr<std::byte> Queue::host_memory(std::size_t bytes) {
  int callers_device = state_->device;
  static_cast<void>(cudaGetDevice(&callers_device));
  static_cast<void>(cudaSetDevice(state_->device));
  void* memory = nullptr;
  const cudaError_t error = cudaHostAlloc(&memory, bytes, cudaHostAllocDefault);
  static_cast<void>(cudaGetLastError());
  static_cast<void>(cudaSetDevice(callers_device));
  if (error != cudaSuccess) {
    return {new std::byte[bytes]{}, std::default_delete<std::byte[]>()};
  }
  std::memset(memory, 0, bytes);
  return {static_cast<std::byte*>(memory), [this](std::byte* at) {
            if (settle()) {
              static_cast<void>(cudaFreeHost(at));
            }
          }};
}

void Queue::copy(std::span<const std::byte> from, std::byte* to) {
  if (from.empty()) {
    return;
  }
  enter();
  fail(take_fault());  // of a launch; asking for addresses would cover it up
  if (pageable(from.data()) || pageable(to)) {
    wait();
    if (!sound()) {
      return;
    }
  }
  put_copy(from, to);
}

void Queue::put_copy(std::span<const std::byte> from, void* to) {
  fail(told(cudaMemcpyAsync(to, from.data(), from.size(), cudaMemcpyDefault, stream_), "copying"));
}

bool Queue::fetch(std::span<const std::byte> from, std::span<std::byte> to) {
  check(from.size() == to.size() && to.size() <= kMostAnswer, "fetch: a short answer");
  enter();
  put_copy(from, state_->answer);
  wait();
  if (!sound()) {
    return false;
  }
  std::memcpy(to.data(), state_->answer, to.size());
  return true;
}

void Queue::wait() {
  if (hung()) {
    return;
  }
  enter();
  fail(take_fault());  // of a launch; asking for events would cover it up
  cudaError_t state = cudaEventRecord(state_->event, stream_);
  const auto began = steady_clock::now();
  while (state == cudaSuccess && (state = cudaEventQuery(state_->event)) == cudaErrorNotReady) {
    static_cast<void>(cudaGetLastError());
    const std::chrono::duration<double> waited = steady_clock::now() - began;
    if (waited.count() > state_->patience_s) {
      hung_.raise();
      fail({Fault::io, "CUDA, waiting: the device was not done within " +
                           std::to_string(state_->patience_s) +
                           " s; where the work before a step takes so long, give its accelerator "
                           "more patience"});
      return;
    }
    if (waited > kEager) {
      std::this_thread::sleep_for(kPause);
    }
    state = cudaSuccess;
  }
  fail(told(state, "waiting"));
  fail(take_fault());
}

bool Queue::settle() {
  int callers_device = state_->device;
  static_cast<void>(cudaGetDevice(&callers_device));
  wait();
  static_cast<void>(cudaSetDevice(callers_device));
  return !hung();
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
