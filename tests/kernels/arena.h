// Memory for one call of an operation: its inputs and outputs, misaligned as wanted, with sentinel
// bytes between them, so that two runs can be compared byte for byte, stray writes included.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include <sotto/base/check.h>

namespace sotto::testing {

class Arena {
 public:
  /// Every buffer starts `misaligned` floats past a 64-byte boundary.
  explicit Arena(std::size_t misaligned)
      : offset_(misaligned * sizeof(float)),
        lines_(std::make_unique_for_overwrite<Line[]>(kCapacity / kLine)) {}

  template <typename T>
  std::span<T> copy_of(std::span<const T> values) {
    const std::span<T> taken = take<T>(values.size());
    std::ranges::copy(values, taken.begin());
    return taken;
  }

  /// A buffer to write to; it holds sentinels.
  template <typename T>
  std::span<T> take(std::size_t count) {
    const std::size_t begin = end_ + kLine + offset_;
    const std::size_t end = begin + count * sizeof(T);
    const std::size_t line_end = (end + kLine - 1) / kLine * kLine;
    check(line_end + kLine <= kCapacity, "the arena is too small");
    std::memset(raw() + end_, kSentinel, line_end + kLine - end_);
    buffers_.push_back({begin, end});
    end_ = line_end;
    return {reinterpret_cast<T*>(raw() + begin), count};
  }

  /// Makes a returned value part of the comparison.
  template <typename T>
  void record(T value) {
    std::ranges::copy(std::as_bytes(std::span(&value, 1)), take<std::byte>(sizeof(T)).begin());
  }

  /// All sentinels are as they were.
  bool intact() const {
    std::size_t at = 0;
    for (const Buffer& buffer : buffers_) {
      if (!all_sentinels(at, buffer.begin)) {
        return false;
      }
      at = buffer.end;
    }
    return buffers_.empty() || all_sentinels(at, end_ + kLine);
  }

  bool same_bytes(const Arena& other) const {
    return end_ == other.end_ && std::memcmp(raw(), other.raw(), end_) == 0;
  }

 private:
  static constexpr std::size_t kLine = 64;
  static constexpr std::size_t kCapacity = std::size_t{1} << 19U;
  static constexpr unsigned char kSentinel = 0xA5;

  struct Buffer {
    std::size_t begin;
    std::size_t end;
  };
  struct alignas(kLine) Line {
    std::array<unsigned char, kLine> bytes;
  };

  unsigned char* raw() { return lines_[0].bytes.data(); }
  const unsigned char* raw() const { return lines_[0].bytes.data(); }

  bool all_sentinels(std::size_t begin, std::size_t end) const {
    return std::all_of(raw() + begin, raw() + end,
                       [](unsigned char byte) { return byte == kSentinel; });
  }

  std::size_t offset_;
  std::size_t end_ = 0;
  std::unique_ptr<Line[]> lines_;
  std::vector<Buffer> buffers_;
};

}  // namespace sotto::testing
