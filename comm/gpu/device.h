// The few calls of CUDA's runtime that transports need: streams, events, copies and memory. One
// implementation calls CUDA (cuda/cuda_device.cc); tests have one that needs no GPU.
//
// No call waits for the device, but those that allocate or release, which may. Faults are
// Fault::io with the runtime's own words. Thread safety: any thread that has called use().
// Ownership: what is made here is given back here, and must not outlive the device.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include <sotto/base/ids.h>
#include <sotto/base/status.h>

struct CUstream_st;
struct CUevent_st;

namespace sotto::internal {

using DeviceStream = CUstream_st*;
using DeviceEvent = CUevent_st*;

enum class DeviceRoom {
  device,  ///< zeros at first; the host must not touch it
  pinned,  ///< host memory from which copies to the device do not wait
};

class Device {
 public:
  virtual ~Device() = default;

  /// Makes the device that of the calling thread. Fault::io when nothing can run there.
  virtual Status use() = 0;

  virtual Result<std::span<std::byte>> allocate(DeviceRoom room, std::size_t bytes) = 0;
  virtual void release(DeviceRoom room, std::span<std::byte> memory) = 0;
  /// True for memory of the device, false for what the host may touch. A device that is lost tells
  /// neither.
  virtual Result<bool> holds(const std::byte* at) const = 0;

  virtual Result<DeviceStream> make_stream() = 0;
  virtual void destroy(DeviceStream stream) = 0;
  virtual Result<DeviceEvent> make_event() = 0;
  virtual void destroy(DeviceEvent event) = 0;

  /// Puts a copy on the stream, between host and device in any direction. Host memory is pinned.
  virtual Status copy(std::span<const std::byte> from, std::byte* to, DeviceStream stream) = 0;
  /// Marks what has been put on the stream so far.
  virtual Status record(DeviceEvent event, DeviceStream stream) = 0;
  /// Whether all that was marked is done.
  virtual Result<bool> passed(DeviceEvent event) = 0;
};

/// The CUDA device for a node, which becomes the calling thread's: the ranks take the devices of
/// their host in turn (CUDA_VISIBLE_DEVICES chooses among them). Without a rank, the one that the
/// thread has. Fault::io when none can be used.
Result<std::shared_ptr<Device>> make_cuda_device(std::optional<Rank> rank);
/// How many devices of this host CUDA shows.
int count_cuda_devices();

/// Memory of a device, or beside it.
class DeviceMemory {
 public:
  DeviceMemory() = default;
  static Result<DeviceMemory> make(Device& device, DeviceRoom room, std::size_t bytes) {
    auto memory = device.allocate(room, bytes);
    if (!memory) {
      return memory.status();
    }
    return DeviceMemory(device, room, *memory);
  }
  ~DeviceMemory() {
    if (device_ != nullptr) {
      device_->release(room_, bytes_);
    }
  }
  DeviceMemory(DeviceMemory&& other) noexcept
      : device_(std::exchange(other.device_, nullptr)), room_(other.room_), bytes_(other.bytes_) {}
  DeviceMemory& operator=(DeviceMemory&& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(room_, other.room_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }

  std::span<std::byte> bytes() const { return bytes_; }
  /// Never gives it back: for memory that a device may still be writing.
  void abandon() { device_ = nullptr; }

 private:
  DeviceMemory(Device& device, DeviceRoom room, std::span<std::byte> bytes)
      : device_(&device), room_(room), bytes_(bytes) {}

  Device* device_ = nullptr;
  DeviceRoom room_ = DeviceRoom::device;
  std::span<std::byte> bytes_;
};

}  // namespace sotto::internal
