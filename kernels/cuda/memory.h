// Device memory for the operations, and for programs that have none of their own.
//
// Unlike the operations (ops.h) these functions wait until the device is done. Not for use from
// several threads at once. Throws Error where the device refuses.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <utility>

#include <sotto/kernels/cuda/stream.h>

namespace sotto::cuda {

/// Owns bytes on the device, at a multiple of 256.
class Memory {
 public:
  explicit Memory(std::size_t bytes);
  /// Takes back what was detached.
  explicit Memory(std::span<std::byte> detached) : bytes_(detached) {}
  ~Memory();
  Memory(Memory&& other) noexcept;
  Memory& operator=(Memory&&) = delete;

  std::span<std::byte> bytes() const { return bytes_; }
  /// Leaves the bytes to the caller.
  std::span<std::byte> detach() { return std::exchange(bytes_, {}); }
  /// `count` of T from byte `offset` on, a multiple of alignof(T).
  template <typename T>
  std::span<T> as(std::size_t offset, std::size_t count) const {
    return {reinterpret_cast<T*>(bytes_.subspan(offset, count * sizeof(T)).data()), count};
  }

 private:
  std::span<std::byte> bytes_;
};

/// Between spans of one length; `to` respectively `from` are on the device.
void copy_to_device(std::span<const std::byte> from, std::span<std::byte> to);
void copy_to_host(std::span<const std::byte> from, std::span<std::byte> to);
/// On the device, as the driver does it: put on the stream.
void copy_within(std::span<const std::byte> from, std::span<std::byte> to, Stream stream);

/// Waits for all work. What went wrong in it, Fault::io.
Status synchronize();

/// The device's own clock around what `work` puts on the default stream, in seconds.
double seconds_on_device(const std::function<void()>& work);

/// What the device calls itself. Requires device_status().ok().
std::string device_name();

}  // namespace sotto::cuda
