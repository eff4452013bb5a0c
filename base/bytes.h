// Bounded little-endian readers and writers: the only way in for bytes that we did not make.
//
// `ByteReader` never reads past its span: the first read that would marks it failed, yields zeros,
// and every later read does the same, so a parser checks once at the end. `ByteWriter` writes into
// a span that the caller sized; `ByteBuffer` grows. None of them owns what it views (ByteBuffer
// owns its bytes); none is thread-safe.
#pragma once

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <sotto/base/check.h>

namespace sotto {

static_assert(std::endian::native == std::endian::little,
              "sotto's wire and kernels are little-endian; this host is not");

template <typename T>
concept WireScalar = std::is_arithmetic_v<T>;

/// Reads scalars and byte runs from a span that it does not trust.
class ByteReader {
 public:
  /// Reads `bytes`, which must outlive the reader.
  explicit ByteReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  /// The next scalar, or 0 once the reader has failed.
  template <WireScalar T>
  T read() {
    T value{};
    const auto raw = take(sizeof(T));
    if (raw.size() == sizeof(T)) {
      std::memcpy(&value, raw.data(), sizeof(T));
    }
    return value;
  }

  /// The next `count` bytes as a view, or an empty view once the reader has failed.
  std::span<const std::byte> take(std::size_t count) {
    if (failed_ || count > bytes_.size() - at_) {
      failed_ = true;
      return {};
    }
    const auto view = bytes_.subspan(at_, count);
    at_ += count;
    return view;
  }

  /// Fills `out` with the next scalars; leaves it untouched on failure.
  template <WireScalar T>
  bool read_into(std::span<T> out) {
    const auto raw = take(out.size_bytes());
    if (failed_) {
      return false;
    }
    if (!raw.empty()) {
      std::memcpy(out.data(), raw.data(), raw.size());
    }
    return true;
  }

  /// A string written by ByteBuffer::write_string, at most `max_bytes` long.
  std::string read_string(std::size_t max_bytes);

  bool failed() const { return failed_; }
  std::size_t position() const { return at_; }
  std::size_t remaining() const { return failed_ ? 0 : bytes_.size() - at_; }
  /// True when nothing failed and nothing is left over.
  bool finished() const { return !failed_ && at_ == bytes_.size(); }

 private:
  std::span<const std::byte> bytes_;
  std::size_t at_ = 0;
  bool failed_ = false;
};

/// Writes scalars and byte runs into a span; running over its end breaks an invariant of ours.
class ByteWriter {
 public:
  /// Writes into `bytes`, which must outlive the writer.
  explicit ByteWriter(std::span<std::byte> bytes) : bytes_(bytes) {}

  /// Appends a scalar.
  template <WireScalar T>
  void write(T value) {
    const auto raw = reserve(sizeof(T));
    std::memcpy(raw.data(), &value, sizeof(T));
  }

  /// The next `count` bytes, to be filled in place by the caller.
  std::span<std::byte> reserve(std::size_t count) {
    check(count <= bytes_.size() - at_, "ByteWriter ran over its span");
    const auto view = bytes_.subspan(at_, count);
    at_ += count;
    return view;
  }

  /// Appends bytes as they are.
  void write_bytes(std::span<const std::byte> raw) {
    const auto view = reserve(raw.size());
    if (!raw.empty()) {
      std::memcpy(view.data(), raw.data(), raw.size());
    }
  }

  std::size_t position() const { return at_; }
  std::size_t remaining() const { return bytes_.size() - at_; }

 private:
  std::span<std::byte> bytes_;
  std::size_t at_ = 0;
};

/// A growing buffer for state that is written once in a while: checkpoints, rendezvous values.
class ByteBuffer {
 public:
  ByteBuffer() = default;
  /// Writes into the memory of `room`; what that held is gone.
  explicit ByteBuffer(std::vector<std::byte> room) : bytes_(std::move(room)) { bytes_.clear(); }

  /// The number of bytes that `save` writes into the buffer that it is given. Keeps none of them.
  template <std::invocable<ByteBuffer&> Save>
  static std::size_t size_of(const Save& save) {
    ByteBuffer counter;
    counter.counts_ = true;
    save(counter);
    return counter.counted_;
  }
  /// Makes room for `bytes` in all, so that writing them moves nothing.
  void reserve(std::size_t bytes) { bytes_.reserve(bytes); }

  /// Appends a scalar.
  template <WireScalar T>
  void write(T value) {
    append(std::as_bytes(std::span<const T, 1>(&value, 1)));
  }
  /// Appends scalars, without their number.
  template <WireScalar T>
  void write_span(std::span<const T> values) {
    append(std::as_bytes(values));
  }
  /// A 32-bit length and the characters.
  void write_string(std::string_view text);

  /// Appends bytes as they are.
  void append(std::span<const std::byte> raw);
  std::span<const std::byte> bytes() const { return bytes_; }
  std::vector<std::byte> take() && { return std::move(bytes_); }

 private:
  std::vector<std::byte> bytes_;
  std::size_t counted_ = 0;
  bool counts_ = false;  ///< only the number of bytes is wanted
};

}  // namespace sotto
