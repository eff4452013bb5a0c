// Codes and random bits of many elements, for the threads of a block.
//
// The layout of packed codes is kPackGroup's (kernels/ops.h), that of rounding noise
// rounding_noise's (base/philox.h).
#pragma once

#include <cstddef>
#include <cstdint>

#include <sotto/base/philox.h>
#include <sotto/kernels/host_device.h>
#include <sotto/kernels/ops.h>

// Places in a tile fit into 32 bits, whose products are half of the registers of 64.
// NOLINTBEGIN(bugprone-implicit-widening-of-multiplication-result)
namespace sotto::cuda {

/// The lowest bits of the 8 bytes of `octet`, that of the lowest byte lowest.
SOTTO_HOST_DEVICE std::uint32_t lowest_bits(std::uint64_t octet) {
  // Each bit is moved to the highest byte by one of the factor's bits, and no two of the 64
  // products fall together.
  constexpr std::uint64_t kLowest = 0x0101010101010101;
  constexpr std::uint64_t kGather = 0x0102040810204080;
  return static_cast<std::uint32_t>(((octet & kLowest) * kGather) >> 56);
}

/// Packs `count` codes of `bits` < 8 bits, given as a byte each at a multiple of 8 with room to the
/// next one.
SOTTO_HOST_DEVICE void pack_planes(const std::byte* codes, std::uint32_t count, std::uint32_t bits,
                                   std::byte* packed, std::uint32_t thread, std::uint32_t threads) {
  constexpr auto kGroup = static_cast<std::uint32_t>(kPackGroup);
  for (std::uint32_t octet = thread; 8 * octet < count; octet += threads) {
    std::uint64_t word = *reinterpret_cast<const std::uint64_t*>(codes + 8 * octet);
    const std::uint32_t left = count - 8 * octet;
    if (left < 8) {
      word &= (std::uint64_t{1} << (8 * left)) - 1;
    }
    const std::uint32_t group = octet / 8;
    const std::uint32_t in_group = count - group * kGroup;
    const std::uint32_t plane_bytes = ((in_group < kGroup ? in_group : kGroup) + 7) / 8;
    std::byte* to = packed + group * 8 * bits + octet % 8;
    for (std::uint32_t plane = 0; plane < bits; ++plane) {
      to[plane * plane_bytes] = static_cast<std::byte>(lowest_bits(word >> plane));
    }
  }
}

/// The code of element i of `count`.
SOTTO_HOST_DEVICE std::uint32_t packed_code(const std::byte* packed, std::uint32_t count,
                                            std::uint32_t bits, std::uint32_t i) {
  constexpr auto kGroup = static_cast<std::uint32_t>(kPackGroup);
  if (bits == 8) {
    return static_cast<std::uint32_t>(packed[i]);
  }
  const std::uint32_t group = i / kGroup;
  const std::uint32_t in_group = count - group * kGroup;
  const std::uint32_t plane_bytes = ((in_group < kGroup ? in_group : kGroup) + 7) / 8;
  const std::byte* from = packed + group * 8 * bits + i % kGroup / 8;
  std::uint32_t code = 0;
  for (std::uint32_t plane = 0; plane < bits; ++plane) {
    const auto byte = static_cast<std::uint32_t>(from[plane * plane_bytes]);
    code |= ((byte >> (i % 8)) & 1U) << plane;
  }
  return code;
}

/// visit(i, random) for the elements first + i, i < count, of the stream `key`: a thread takes the
/// eight that one noise block serves.
template <typename Visit>
SOTTO_HOST_DEVICE void each_noise(const RandomKey& key, std::size_t first, std::uint32_t count,
                                  std::uint32_t thread, std::uint32_t threads, const Visit& visit) {
  constexpr auto kGroup = static_cast<std::uint32_t>(kNoiseGroup);
  constexpr std::uint32_t kBlocks = 16;
  const auto lead = static_cast<std::uint32_t>(first % kGroup);
  const auto first_block = static_cast<std::uint32_t>(kBlocks * (first / kGroup));
  const std::uint32_t blocks = (lead + count + kGroup - 1) / kGroup * kBlocks;
  for (std::uint32_t b = thread; b < blocks; b += threads) {
    const PhiloxCounter words = key.noise_block(first_block + b);
    // Below the first element it wraps around, beyond the last.
    const std::uint32_t begin = b / kBlocks * kGroup + b % kBlocks - lead;
    SOTTO_UNROLL
    for (std::uint32_t half = 0; half < 2; ++half) {
      SOTTO_UNROLL
      for (std::uint32_t word = 0; word < 4; ++word) {
        const std::uint32_t i = begin + kBlocks * (4 * half + word);
        if (i < count) {
          visit(i, (words[word] >> (16 * half)) & 0xFFFFU);
        }
      }
    }
  }
}

}  // namespace sotto::cuda
// NOLINTEND(bugprone-implicit-widening-of-multiplication-result)
