// Whole numbers in as few bytes as each needs: 7 bits a byte, the lowest first, and 1 in the top
// bit of all but the last byte (LEB128). Pure functions; thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include <sotto/base/bytes.h>

namespace sotto {

/// Bytes of the longest varint, which holds 63 bits.
inline constexpr std::size_t kMostVarintBytes = 9;
/// Bytes of the longest varint of a number of 32 bits.
inline constexpr std::size_t kMostVarint32Bytes = 5;

/// Appends `value`, of at most 63 bits.
inline void write_varint(std::uint64_t value, ByteWriter& out) {
  constexpr std::uint64_t kMore = 0x80;
  while (value >= kMore) {
    out.write(static_cast<std::uint8_t>(value | kMore));
    value >>= 7U;
  }
  out.write(static_cast<std::uint8_t>(value));
}

/// The next number; no value where the bytes end within it, or it is longer than any.
inline std::optional<std::uint64_t> read_varint(ByteReader& in) {
  constexpr std::uint8_t kMore = 0x80;
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < kMostVarintBytes; ++i) {
    const auto byte = in.read<std::uint8_t>();
    value |= static_cast<std::uint64_t>(byte & (kMore - 1)) << (7 * i);
    if ((byte & kMore) == 0) {
      return in.failed() ? std::nullopt : std::optional(value);
    }
  }
  return std::nullopt;
}

/// Whole numbers of either sign as ones without: 0, −1, 1, −2 … are 0, 1, 2, 3 …
inline std::uint32_t zigzag(std::int32_t value) {
  return (static_cast<std::uint32_t>(value) << 1U) ^ (value < 0 ? ~std::uint32_t{0} : 0);
}
/// The number that zigzag() makes `value` of.
inline std::int32_t from_zigzag(std::uint32_t value) {
  return static_cast<std::int32_t>((value >> 1U) ^ ((value & 1U) != 0 ? ~std::uint32_t{0} : 0));
}

}  // namespace sotto
