// A Feistel network of eight rounds on words of few bits: a permutation of 0 … 2^bits − 1, which
// sparse compressors choose elements by. Integers only, so that the same comes out everywhere.
// Pure functions; thread-safe.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace sotto {

/// The keys of the rounds, and how a word is cut into two halves.
struct FeistelNetwork {
  std::array<std::uint32_t, 8> keys{};
  int low_bits = 0;  ///< of the lower half, 1 … 16
  std::uint32_t low_mask = 0;
  std::uint32_t high_mask = 0;
};

/// The finalizer of MurmurHash3 (A. Appleby): every input bit reaches every output bit.
constexpr std::uint32_t murmur_mix(std::uint32_t value) {
  value ^= value >> 16U;
  value *= 0x85EBCA6B;
  value ^= value >> 13U;
  value *= 0xC2B2AE35;
  value ^= value >> 16U;
  return value;
}

/// Where the network takes a word of low_bits and the bits of high_mask.
constexpr std::uint32_t encipher(const FeistelNetwork& network, std::uint32_t word) {
  std::uint32_t low = word & network.low_mask;
  std::uint32_t high = (word >> network.low_bits) & network.high_mask;
  for (std::size_t round = 0; round < network.keys.size(); round += 2) {
    low ^= murmur_mix(high ^ network.keys[round]) & network.low_mask;
    high ^= murmur_mix(low ^ network.keys[round + 1]) & network.high_mask;
  }
  return (high << network.low_bits) | low;
}

/// encipher of each of these words: side by side, by the fastest instructions of this processor.
void encipher(const FeistelNetwork& network, std::span<std::uint32_t> words);

}  // namespace sotto
