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

std::uint64_t KeyedPermutation::encipher(std::uint64_t point) const {
  auto low = static_cast<std::uint32_t>(point) & low_mask_;
  auto high = static_cast<std::uint32_t>(point >> low_bits_);
  for (std::size_t round = 0; round < kRounds; round += 2) {
    low ^= mix(high ^ round_keys_[round]) & low_mask_;
    high ^= mix(low ^ round_keys_[round + 1]) & high_mask_;
  }
  return (std::uint64_t{high} << low_bits_) | low;
}

std::uint64_t KeyedPermutation::operator()(std::uint64_t index) const {
  std::uint64_t point = encipher(index);
  while (point >= size_) {
    point = encipher(point);
  }
  return point;
}

}  // namespace sotto::internal
