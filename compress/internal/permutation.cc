#include "permutation.h"

#include <algorithm>
#include <bit>

#include <sotto/base/check.h>
#include <sotto/base/philox.h>

namespace sotto::internal {
namespace {

/// The finalizer of MurmurHash3 (A. Appleby): every input bit reaches every output bit.
constexpr std::uint32_t mix(std::uint32_t value) {
  value ^= value >> 16;
  value *= 0x85EBCA6B;
  value ^= value >> 13;
  value *= 0xC2B2AE35;
  value ^= value >> 16;
  return value;
}

constexpr std::uint32_t ones(int count) {
  return static_cast<std::uint32_t>((std::uint64_t{1} << count) - 1);
}

}  // namespace

KeyedPermutation::KeyedPermutation(std::uint64_t key, std::uint64_t size) : size_(size) {
  check(size >= 1 && size <= std::uint64_t{1} << 32, "KeyedPermutation: size outside 1 … 2^32");
  constexpr int kLeastBits = 8;
  const int bits = std::max(kLeastBits, static_cast<int>(std::bit_width(size - 1)));
  low_bits_ = bits / 2;
  low_mask_ = ones(low_bits_);
  high_mask_ = ones(bits - low_bits_);
  const PhiloxKey philox_key{static_cast<std::uint32_t>(key),
                             static_cast<std::uint32_t>(key >> 32)};
  for (std::size_t i = 0; i < round_keys_.size(); ++i) {
    const PhiloxCounter words =
        philox4x32({static_cast<std::uint32_t>(i / 4), 0, 0, 0}, philox_key);
    round_keys_[i] = words[i % 4];
  }
}

inline std::uint32_t KeyedPermutation::encipher(std::uint32_t point) const {
  std::uint32_t low = point & low_mask_;
  std::uint32_t high = (point >> low_bits_) & high_mask_;
  for (std::size_t round = 0; round < kRounds; round += 2) {
    low ^= mix(high ^ round_keys_[round]) & low_mask_;
    high ^= mix(low ^ round_keys_[round + 1]) & high_mask_;
  }
  return (high << low_bits_) | low;
}

void KeyedPermutation::places(std::uint64_t first, std::span<std::uint32_t> out) const {
  // Two loops: the first has no branches, and runs side by side.
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i] = encipher(static_cast<std::uint32_t>(first + i));
  }
  for (std::uint32_t& place : out) {
    while (place >= size_) {
      place = encipher(place);
    }
  }
}

std::uint64_t KeyedPermutation::operator()(std::uint64_t index) const {
  std::uint32_t place = 0;
  places(index, {&place, 1});
  return place;
}

}  // namespace sotto::internal
