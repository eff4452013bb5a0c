// Bytes that nobody changes any more, and that several may hold: a copy of the object refers to the
// same bytes, or to a part of them.
//
// Thread safety: different objects may be used by different threads, also those of the same bytes.
// Ownership: the last object that refers to them frees the bytes, all at once.
#pragma once

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace sotto {

class SharedBytes {
 public:
  /// No bytes.
  SharedBytes() = default;
  /// All bytes of a vector.
  SharedBytes(std::shared_ptr<const std::vector<std::byte>> bytes)  // NOLINT: as a pointer would be
      : owner_(std::move(bytes)) {
    if (owner_ != nullptr) {
      view_ = *owner_;
    }
  }
  /// All bytes of a vector, which it takes over.
  SharedBytes(std::vector<std::byte> bytes)  // NOLINT: nothing is copied or lost
      : SharedBytes(std::make_shared<const std::vector<std::byte>>(std::move(bytes))) {}
  /// These bytes.
  SharedBytes(std::initializer_list<std::byte> bytes)
      : SharedBytes(std::vector<std::byte>(bytes)) {}
  /// A copy of these bytes.
  static SharedBytes copy(std::span<const std::byte> bytes) {
    return {std::vector<std::byte>(bytes.begin(), bytes.end())};
  }

  // A range, which becomes a span wherever one is asked for.
  const std::byte* data() const { return view_.data(); }                ///< the first byte
  std::size_t size() const { return view_.size(); }                     ///< number of bytes
  bool empty() const { return view_.empty(); }                          ///< no bytes
  const std::byte* begin() const { return view_.data(); }               ///< the first
  const std::byte* end() const { return view_.data() + view_.size(); }  ///< past the last

  /// A part of these bytes, which keeps all of them in memory.
  SharedBytes part(std::span<const std::byte> bytes) const {
    SharedBytes part = *this;
    part.view_ = bytes;
    return part;
  }

  /// Whether the bytes are equal.
  bool operator==(const SharedBytes& other) const { return std::ranges::equal(view_, other.view_); }

 private:
  std::shared_ptr<const std::vector<std::byte>> owner_;
  std::span<const std::byte> view_;
};

}  // namespace sotto
