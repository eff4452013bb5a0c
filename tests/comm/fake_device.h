// A GPU that is none: streams are threads, and the device's memory is such that the host cannot
// touch it. Each allocation is mapped twice: the pointers that are handed out have no access where
// they are of the device, and the streams use the other mapping. So a transport that reads a frame
// where only the device can crashes here, as one that reads it too early sees old bytes. Events and
// copies need a thread that has chosen the device; any other ends the test.
//
// Thread safety: as internal::Device.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <sotto/base/check.h>
#include <sotto/comm/gpu/device.h>

namespace sotto::test {

/// Does work in order, one piece at a time.
class FakeStream {
 public:
  FakeStream() : thread_([this] { run(); }) {}
  ~FakeStream() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  FakeStream(const FakeStream&) = delete;
  FakeStream& operator=(const FakeStream&) = delete;

  void put(std::function<void()> work) {
    {
      const std::lock_guard lock(mutex_);
      work_.push_back(std::move(work));
    }
    changed_.notify_all();
  }

 private:
  void run() {
    for (;;) {
      std::function<void()> work;
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return stopping_ || !work_.empty(); });
        if (work_.empty()) {
          return;
        }
        work = std::move(work_.front());
        work_.pop_front();
      }
      work();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> work_;
  bool stopping_ = false;
  std::thread thread_;
};

struct FakeEvent {
  std::atomic<std::uint64_t> recorded{0};
  std::atomic<std::uint64_t> passed{0};
};

class FakeDevice final : public internal::Device {
 public:
  using DeviceRoom = internal::DeviceRoom;

  FakeDevice() = default;
  ~FakeDevice() override {
    sotto::check(blocks_.empty() && things_ == 0, "all that a device gave is given back");
  }
  FakeDevice(const FakeDevice&) = delete;
  FakeDevice& operator=(const FakeDevice&) = delete;

  /// Takes back memory that was left to it for good, once nothing is at work on it any more;
  /// returns how many pieces that were.
  std::size_t reclaim() {
    const std::size_t kept = blocks_.size();
    while (!blocks_.empty()) {
      const auto& [at, block] = *blocks_.begin();
      release(block.room, {const_cast<std::byte*>(at), block.length});
    }
    return kept;
  }

  /// The next copy that is asked for is refused, as a device that fell off its bus would.
  void break_copies() { broken_ = true; }
  /// So are marks on streams.
  void break_marks() { marks_broken_ = true; }
  /// So is telling where memory lies.
  void break_lookups() { lookups_broken_ = true; }
  /// No event looks as if it had passed, until some looks after release_events().
  void hold_events() { held_looks_ = std::numeric_limits<int>::max(); }
  void release_events(int looks) { held_looks_ = looks; }

  Status use() override {
    chosen() = this;
    return {};
  }

  Result<std::span<std::byte>> allocate(DeviceRoom room, std::size_t bytes) override {
    Block block;
    block.length = bytes;
    const int memory = ::memfd_create("fake-device", MFD_CLOEXEC);
    sotto::check(memory >= 0 && ::ftruncate(memory, static_cast<off_t>(bytes)) == 0, "memory");
    const int access = room == DeviceRoom::pinned ? PROT_READ | PROT_WRITE : PROT_NONE;
    void* shown = ::mmap(nullptr, bytes, access, MAP_SHARED, memory, 0);
    void* used = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
    sotto::check(shown != MAP_FAILED && used != MAP_FAILED, "memory is mapped");
    ::close(memory);
    block.room = room;
    block.used = static_cast<std::byte*>(used);
    const std::lock_guard lock(mutex_);
    blocks_[static_cast<std::byte*>(shown)] = block;
    return std::span(static_cast<std::byte*>(shown), bytes);
  }
  void release(DeviceRoom room, std::span<std::byte> memory) override {
    Block block;
    {
      const std::lock_guard lock(mutex_);
      const auto found = blocks_.find(memory.data());
      sotto::check(found != blocks_.end() && found->second.room == room, "it was allocated so");
      block = found->second;
      blocks_.erase(found);
    }
    ::munmap(memory.data(), block.length);
    ::munmap(block.used, block.length);
  }
  Result<bool> holds(const std::byte* at) const override {
    if (lookups_broken_) {
      return lost("asking where memory lies");
    }
    const std::lock_guard lock(mutex_);
    const auto found = find(at);
    return found != blocks_.end() && found->second.room == DeviceRoom::device;
  }

  Result<internal::DeviceStream> make_stream() override {
    ++things_;
    return reinterpret_cast<internal::DeviceStream>(new FakeStream);
  }
  void destroy(internal::DeviceStream stream) override {
    --things_;
    delete of(stream);
  }
  Result<internal::DeviceEvent> make_event() override {
    check_chosen();
    ++things_;
    return reinterpret_cast<internal::DeviceEvent>(new FakeEvent);
  }
  void destroy(internal::DeviceEvent event) override {
    --things_;
    delete of(event);
  }

  Status copy(std::span<const std::byte> from, std::byte* to,
              internal::DeviceStream stream) override {
    check_chosen();
    if (broken_) {
      return lost("copying");
    }
    of(stream)->put([source = reach(from.data()), target = reach(to), size = from.size()] {
      std::memcpy(target, source, size);
    });
    return {};
  }
  Status record(internal::DeviceEvent event, internal::DeviceStream stream) override {
    check_chosen();
    if (marks_broken_) {
      return lost("marking a stream");
    }
    FakeEvent* mark = of(event);
    const auto number = ++mark->recorded;
    of(stream)->put([mark, number] { mark->passed = number; });
    return {};
  }
  Result<bool> passed(internal::DeviceEvent event) override {
    if (held_looks_ > 0) {
      --held_looks_;
      return false;
    }
    return of(event)->passed == of(event)->recorded;
  }

  static FakeStream* of(internal::DeviceStream stream) {
    return reinterpret_cast<FakeStream*>(stream);
  }
  /// The memory at `at`, where streams may use it.
  std::byte* reach(const std::byte* at) const {
    const std::lock_guard lock(mutex_);
    const auto found = find(at);
    sotto::check(found != blocks_.end(), "a copy is between the device and pinned memory");
    return found->second.used + (at - found->first);
  }

 private:
  struct Block {
    DeviceRoom room = DeviceRoom::device;
    std::size_t length = 0;
    std::byte* used = nullptr;
  };
  using Blocks = std::map<const std::byte*, Block>;

  static Status lost(const std::string& doing) {
    return {Fault::io, "CUDA, " + doing + ": the device is lost"};
  }
  static FakeDevice*& chosen() {
    thread_local FakeDevice* device = nullptr;
    return device;
  }
  void check_chosen() const {
    sotto::check(chosen() == this, "the calling thread has chosen the device");
  }
  Blocks::const_iterator find(const std::byte* at) const {
    auto next = blocks_.upper_bound(at);
    if (next == blocks_.begin()) {
      return blocks_.end();
    }
    --next;
    return at < next->first + next->second.length ? next : blocks_.end();
  }
  static FakeEvent* of(internal::DeviceEvent event) { return reinterpret_cast<FakeEvent*>(event); }

  mutable std::mutex mutex_;
  Blocks blocks_;
  std::atomic<int> things_{0};
  std::atomic<bool> broken_{false};
  std::atomic<bool> marks_broken_{false};
  std::atomic<bool> lookups_broken_{false};
  std::atomic<int> held_looks_{0};
};

}  // namespace sotto::test
