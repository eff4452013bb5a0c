// Memory at any address, touched 16 bytes at a time where that is possible.
//
// The functions are called by all threads of a block, each with its number; together they do the
// whole. Neighbouring threads touch neighbouring memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include <sotto/kernels/host_device.h>

namespace sotto::cuda {

/// What one thread loads or stores at once.
inline constexpr std::uint32_t kVector = 16;
inline constexpr std::uint32_t kVectorFloats = 4;

struct alignas(kVector) FourFloats {
  float x, y, z, w;
};
struct alignas(kVector) FourWords {
  std::uint32_t x, y, z, w;
};

/// How far behind a multiple of 16 an address lies.
SOTTO_HOST_DEVICE std::uint32_t phase_of(const void* at) {
  return static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(at) % kVector);
}

/// Elements of `count` before the first whose address is a multiple of 16.
SOTTO_HOST_DEVICE std::uint32_t unaligned_floats(std::uint32_t phase, std::uint32_t count) {
  const std::uint32_t head = (kVector - phase) % kVector / sizeof(float);
  return head < count ? head : count;
}

/// Scalars at any address.
SOTTO_HOST_DEVICE std::uint32_t load_u32(const std::byte* at) {
  std::uint32_t value = 0;
  SOTTO_UNROLL
  for (std::uint32_t k = 0; k < 4; ++k) {
    value |= static_cast<std::uint32_t>(at[k]) << (8 * k);
  }
  return value;
}
SOTTO_HOST_DEVICE void store_u32(std::byte* at, std::uint32_t value) {
  SOTTO_UNROLL
  for (std::uint32_t k = 0; k < 4; ++k) {
    at[k] = static_cast<std::byte>((value >> (8 * k)) & 0xFFU);
  }
}
SOTTO_HOST_DEVICE std::uint16_t load_u16(const std::byte* at) {
  return static_cast<std::uint16_t>(static_cast<std::uint32_t>(at[0]) |
                                    static_cast<std::uint32_t>(at[1]) << 8);
}
SOTTO_HOST_DEVICE void store_u16(std::byte* at, std::uint32_t value) {
  at[0] = static_cast<std::byte>(value & 0xFFU);
  at[1] = static_cast<std::byte>((value >> 8) & 0xFFU);
}

/// one(i) for the elements i < count before `head` and behind the last whole vector, four(i) for
/// the first elements of the vectors between.
template <typename One, typename Four>
SOTTO_HOST_DEVICE void sweep(std::uint32_t count, std::uint32_t head, std::uint32_t thread,
                             std::uint32_t threads, const One& one, const Four& four) {
  const std::uint32_t vectors = (count - head) / kVectorFloats;
  for (std::uint32_t k = thread; k < vectors; k += threads) {
    four(head + k * kVectorFloats);
  }
  const std::uint32_t covered = vectors * kVectorFloats;
  for (std::uint32_t k = thread; k < count - covered; k += threads) {
    one(k < head ? k : k + covered);
  }
}

/// Copies bytes between addresses of the same phase.
SOTTO_HOST_DEVICE void move_bytes(const std::byte* from, std::byte* to, std::uint32_t count,
                                  std::uint32_t thread, std::uint32_t threads) {
  std::uint32_t head = (kVector - phase_of(to)) % kVector;
  head = head < count ? head : count;
  const std::uint32_t vectors = (count - head) / kVector;
  for (std::uint32_t k = thread; k < vectors; k += threads) {
    const std::uint32_t at = head + k * kVector;
    *reinterpret_cast<FourWords*>(to + at) = *reinterpret_cast<const FourWords*>(from + at);
  }
  const std::uint32_t covered = vectors * kVector;
  for (std::uint32_t k = thread; k < count - covered; k += threads) {
    const std::uint32_t at = k < head ? k : k + covered;
    to[at] = from[at];
  }
}

}  // namespace sotto::cuda
