// Ascending indices as Golomb–Rice coded gaps (R. F. Rice 1979; see topk.h for the layout).
//
// The writer and the reader are bounded by their spans; neither owns it. One thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace sotto::internal {

inline constexpr int kMostRiceParameter = 31;

/// The p that minimizes rice_bits_bound, 0 … kMostRiceParameter.
int rice_parameter(std::uint64_t count, std::uint64_t elements);

/// Bits that `count` distinct indices below `elements` take at most: count (p + 1) +
/// ⌊(elements − count) / 2^p⌋, because the gaps sum to at most elements − count.
constexpr std::uint64_t rice_bits_bound(std::uint64_t count, std::uint64_t elements, int p) {
  return count * (static_cast<std::uint64_t>(p) + 1) + ((elements - count) >> p);
}

class RiceWriter {
 public:
  RiceWriter(std::span<std::byte> out, int p) : out_(out), p_(p) {}

  /// Appends an index above all earlier ones. The span holds rice_bits_bound of the whole list.
  void write(std::uint32_t index);
  /// Appends indices, each above the one before it.
  void write(std::span<const std::uint32_t> indices);
  /// Begins another list right behind the last index; its gaps count from `first`.
  void restart(std::uint64_t first) { next_index_ = first; }
  /// Fills the last byte with zeros; returns the bytes used.
  std::size_t finish();

 private:
  /// Appends fewer than 64 bits.
  void put(std::uint64_t bits, int count);

  std::span<std::byte> out_;
  int p_;
  std::uint64_t next_index_ = 0;  ///< lowest index that may follow
  std::uint64_t pending_ = 0;
  int pending_bits_ = 0;
  std::size_t at_ = 0;
};

class RiceReader {
 public:
  /// Reads indices below `elements`; 0 ≤ p ≤ kMostRiceParameter.
  RiceReader(std::span<const std::byte> bytes, int p, std::uint64_t elements)
      : bytes_(bytes), p_(p), elements_(elements) {}

  /// The next index, or nothing when the bytes end or the index would not be below `elements`.
  std::optional<std::uint32_t> read();
  /// Reads indices until `out` is full, or one is none; returns how many there are.
  std::size_t read(std::span<std::uint32_t> out);
  /// Begins another list, of indices from `first` on and below `elements`.
  void restart(std::uint64_t first, std::uint64_t elements) {
    next_index_ = first;
    elements_ = elements;
  }
  /// True when only zero padding of less than a byte is left.
  bool finished() const { return at_ == bytes_.size() && window_bits_ < 8 && window_ == 0; }

 private:
  void refill();
  /// Reads as `read`, an index of more bits than the window has.
  std::optional<std::uint32_t> read_slowly();
  /// Takes ones up to and including the zero that ends them; nothing when there is none.
  std::optional<std::uint64_t> read_unary();

  std::span<const std::byte> bytes_;
  int p_;
  std::uint64_t elements_;
  std::uint64_t next_index_ = 0;
  std::uint64_t window_ = 0;  ///< the next window_bits_ bits, lowest first; zeros above
  int window_bits_ = 0;
  std::size_t at_ = 0;
};

}  // namespace sotto::internal
