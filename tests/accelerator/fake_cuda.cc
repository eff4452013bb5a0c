#include "accelerator/fake_cuda.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <deque>
#include <limits>
#include <memory>
#include <mutex>
#include <utility>

#include "accelerator/device.h"
#include "accelerator/fake_stream.h"
#include "comm/fake_device.h"

#include <sotto/base/error.h>
#include <sotto/kernels/cuda/memory.h>
#include <sotto/kernels/cuda/queue.h>

namespace sotto {
namespace {

using internal::DeviceRoom;
using test::fake_cuda::put;
using test::fake_cuda::used;

std::recursive_mutex mutex;
bool lost = false;
int waits_left = -1;  // negative: any number
bool memory_refused = false;
bool stalled = false;

test::FakeDevice& device() {
  static test::FakeDevice device;
  return device;
}

/// Work in order, which is done when somebody waits for it.
struct LazyStream {
  std::deque<std::function<void()>> work;
  std::uint64_t put = 0;
  std::uint64_t done = 0;

  void drop() {
    work.clear();
    done = put;
  }
  void finish(std::uint64_t until) {
    while (done < until && !work.empty()) {
      const auto next = std::move(work.front());
      work.pop_front();
      ++done;
      next();
    }
  }
};

std::vector<LazyStream*>& streams() {
  static std::vector<LazyStream*> all;
  return all;
}

LazyStream& of(cuda::Stream stream) {
  static LazyStream by_default;
  return stream == nullptr ? by_default : *reinterpret_cast<LazyStream*>(stream);
}

cuda::Stream new_stream() {
  const std::lock_guard lock(mutex);
  auto* stream = new LazyStream;
  streams().push_back(stream);
  return reinterpret_cast<cuda::Stream>(stream);
}

void delete_stream(cuda::Stream stream) {
  const std::lock_guard lock(mutex);
  of(stream).finish(of(stream).put);
  std::erase(streams(), &of(stream));
  delete &of(stream);
}

void finish_all() {
  const std::lock_guard lock(mutex);
  for (LazyStream* stream : streams()) {
    stream->finish(stream->put);
  }
}

/// What is put on `later` begins when what is on `earlier` now is done.
void order(cuda::Stream earlier, cuda::Stream later) {
  const std::lock_guard lock(mutex);
  put(later, [&stream = of(earlier), until = of(earlier).put] { stream.finish(until); });
}

bool on_device(const std::byte* at) { return *device().holds(at); }

}  // namespace

namespace test {
namespace fake_cuda {

void put(cuda::Stream stream, std::function<void()> work) {
  const std::lock_guard lock(mutex);
  of(stream).work.push_back(std::move(work));
  ++of(stream).put;
}

std::byte* reach(const std::byte* at) { return device().reach(at); }

}  // namespace fake_cuda

cuda::Stream make_stream() { return new_stream(); }

void finish(cuda::Stream stream) {
  const std::lock_guard lock(mutex);
  of(stream).finish(of(stream).put);
}

void destroy(cuda::Stream stream) { delete_stream(stream); }

DeviceFloats::DeviceFloats(std::size_t count) {
  cuda::Memory memory(count * sizeof(float));
  there_ = memory.as<float>(0, count);
  memory.detach();
}

DeviceFloats::~DeviceFloats() { const cuda::Memory freed(std::as_writable_bytes(there_)); }

std::vector<float> DeviceFloats::read() const {
  const auto here = used(there_);
  return {here.begin(), here.end()};
}

void DeviceFloats::compute(std::span<const float> from,
                           std::function<void(std::span<const float>, std::span<float>)> kernel,
                           cuda::Stream stream) const {
  put(stream,
      [from = used(from), to = used(there_), kernel = std::move(kernel)] { kernel(from, to); });
}

void DeviceFloats::write(std::span<const float> values) const {
  std::ranges::copy(values, used(there_).begin());
}

namespace fake_cuda {

void lose_device() {
  const std::lock_guard lock(mutex);
  lost = true;
}
void lose_device_after(int waits) {
  const std::lock_guard lock(mutex);
  waits_left = waits;
}
void recover() {
  const std::lock_guard lock(mutex);
  lost = false;
  waits_left = -1;
}
int& current_device() {
  thread_local int device = 0;
  return device;
}
void refuse_memory(bool refuse) { memory_refused = refuse; }
std::size_t reclaim() {
  const std::lock_guard lock(mutex);
  for (const LazyStream* stream : std::exchange(streams(), {})) {
    delete stream;
  }
  return device().reclaim();
}
void stall(bool now_stalled) {
  const std::lock_guard lock(mutex);
  stalled = now_stalled;
}

}  // namespace fake_cuda
}  // namespace test

namespace cuda {

Status take_fault() { return {}; }
Status device_status() { return {}; }

Memory::Memory(std::size_t bytes) {
  if (memory_refused) {
    throw Error("CUDA, allocating memory: out of memory");
  }
  if (bytes > 0) {
    bytes_ = *device().allocate(DeviceRoom::device, bytes);
    std::memset(used(bytes_).data(), 0xFF, bytes);
  }
}

Memory::~Memory() {
  if (bytes_.data() != nullptr) {
    check(!stalled, "nothing is given back that a device may still touch");
    finish_all();
    device().release(DeviceRoom::device, bytes_);
  }
}

Memory::Memory(Memory&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}

void copy_to_device(std::span<const std::byte> from, std::span<std::byte> to) {
  finish_all();
  std::ranges::copy(from, used(to).begin());
}

void copy_to_host(std::span<const std::byte> from, std::span<std::byte> to) {
  finish_all();
  std::ranges::copy(used(from), to.begin());
}

Status synchronize() {
  finish_all();
  return {};
}

struct Queue::State {
  int callers_device = 0;
  std::mutex mutex;
  Status status;
};

Queue::Queue(double /*patience_s*/) : stream_(new_stream()), state_(std::make_unique<State>()) {}
Queue::~Queue() {
  if (settle()) {
    delete_stream(stream_);
  }
}
void Queue::enter() { test::fake_cuda::current_device() = 0; }
void Queue::follow(Stream other) {
  state_->callers_device = test::fake_cuda::current_device();
  enter();
  order(other, stream_);
}
void Queue::lead(Stream other) {
  order(stream_, other);
  test::fake_cuda::current_device() = state_->callers_device;
}
bool Queue::reaches(const void* at) { return on_device(static_cast<const std::byte*>(at)); }

std::shared_ptr<std::byte> Queue::host_memory(std::size_t bytes) {
  static std::vector<std::byte*> kept;  // for good, and not lost
  return {new std::byte[bytes]{}, [this](std::byte* at) {
            if (settle()) {
              delete[] at;
            } else {
              kept.push_back(at);
            }
          }};
}

void Queue::copy(std::span<const std::byte> from, std::byte* to) {
  if (from.empty()) {
    return;
  }
  enter();
  if (stalled) {  // as pageable bytes wait for what is before them
    wait();
  }
  if (!sound()) {
    return;
  }
  check(on_device(from.data()) || on_device(to), "one side of a copy is on the device");
  if (on_device(from.data())) {
    std::byte* target = on_device(to) ? device().reach(to) : to;
    put(stream_, [from = used(from), target] { std::ranges::copy(from, target); });
  } else {
    put(stream_, [from, to = device().reach(to)] { std::ranges::copy(from, to); });
  }
}

bool Queue::fetch(std::span<const std::byte> from, std::span<std::byte> to) {
  check(from.size() == to.size() && to.size() <= kMostAnswer, "fetch: a short answer");
  wait();
  if (!sound()) {
    return false;
  }
  std::ranges::copy(used(from), to.begin());
  return true;
}

void Queue::wait() {
  if (hung()) {
    return;
  }
  enter();
  const std::lock_guard lock(mutex);
  if (stalled) {
    hung_.raise();
    fail({Fault::io, "CUDA, waiting: the device was not done in time"});
    return;
  }
  lost = lost || waits_left == 0;
  waits_left -= waits_left > 0 ? 1 : 0;
  if (!lost) {
    of(stream_).finish(of(stream_).put);
  } else {
    of(stream_).drop();  // it will never be done
    fail({Fault::io, "CUDA, waiting: the device is lost"});
  }
}

bool Queue::settle() {
  const int callers_device = test::fake_cuda::current_device();
  wait();
  test::fake_cuda::current_device() = callers_device;
  return !hung();
}

Status Queue::status() const {
  const std::lock_guard lock(state_->mutex);
  return state_->status;
}

void Queue::fail(const Status& status) {
  const std::lock_guard lock(state_->mutex);
  if (!status.ok() && state_->status.ok()) {
    state_->status = status;
    failed_.raise();
  }
}

}  // namespace cuda
}  // namespace sotto
