// How a vector is cut into chunks that share a scale, and where their packed codes stand.
// A plain value; thread-safe. Constant expressions, so that GPU code has them too.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>

#include <sotto/kernels/ops.h>

namespace sotto::internal {

/// The largest chunk length that a payload's header can name.
inline constexpr std::uint64_t kMostChunk = std::numeric_limits<std::uint32_t>::max();

class Chunks {
 public:
  /// `length` 0 puts the whole vector into one chunk.
  constexpr Chunks(std::size_t elements, std::size_t length, int bits)
      : elements_(elements),
        length_(length == 0 ? std::max<std::size_t>(elements, 1) : length),
        bits_(bits) {}

  constexpr std::size_t count() const {
    return elements_ / length_ + (elements_ % length_ != 0 ? 1 : 0);
  }
  /// Elements of the largest chunk.
  constexpr std::size_t longest() const { return std::min(length_, elements_); }
  /// First element of chunk `index`.
  constexpr std::size_t first(std::size_t index) const { return index * length_; }
  /// One past the last element of the chunks before `index`.
  constexpr std::size_t end(std::size_t index) const {
    return std::min(index * length_, elements_);
  }
  constexpr std::size_t size(std::size_t index) const {
    return std::min(length_, elements_ - first(index));
  }

  /// Each chunk's codes start on a byte of their own, so that any length can be cut.
  constexpr std::size_t code_bytes(std::size_t index) const {
    return packed_bytes(size(index), bits_);
  }
  constexpr std::size_t code_offset(std::size_t index) const {
    return index * packed_bytes(length_, bits_);
  }
  /// Calls visit(index, from, size) for the parts of the elements first … first + count − 1, each
  /// of which lies in one chunk.
  template <typename Visit>
  void each_part(std::size_t first, std::size_t count, const Visit& visit) const {
    for (const std::size_t end = first + count; first < end;) {
      const std::size_t index = first / length_;
      const std::size_t size = std::min(end, this->end(index + 1)) - first;
      visit(index, first, size);
      first += size;
    }
  }
  /// The place of the codes of element `from` of chunk `index`, a multiple of kPackGroup after its
  /// first.
  constexpr std::size_t code_offset(std::size_t index, std::size_t from) const {
    return code_offset(index) + packed_bytes(from - first(index), bits_);
  }
  constexpr std::size_t total_code_bytes() const {
    return elements_ / length_ * packed_bytes(length_, bits_) +
           packed_bytes(elements_ % length_, bits_);
  }

 private:
  std::size_t elements_;
  std::size_t length_;
  int bits_;
};

}  // namespace sotto::internal
