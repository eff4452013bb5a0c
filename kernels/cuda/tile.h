// A piece of a vector on its way to codes or back, by the threads of one block, in shared memory.
//
// Values and packed codes lie there as far behind a multiple of 16 bytes as they do in the memory
// that they come from or go to, so that both sides are touched 16 bytes at a time.
#pragma once

#include <cstddef>
#include <cstdint>

#include <sotto/base/philox.h>
#include <sotto/kernels/cuda/block.h>
#include <sotto/kernels/cuda/bytes.h>
#include <sotto/kernels/cuda/coders.h>
#include <sotto/kernels/cuda/packing.h>

// Places in a tile fit into 32 bits, whose products are half of the registers of 64.
// NOLINTBEGIN(bugprone-implicit-widening-of-multiplication-result)
namespace sotto::cuda {

/// Elements of a tile where nothing else decides: whole reduction blocks, groups of noise and of
/// packed codes.
inline constexpr std::uint32_t kTile = kReduceBlock;

SOTTO_HOST_DEVICE constexpr std::uint32_t rounded_up(std::uint32_t bytes) {
  return (bytes + kVector - 1) / kVector * kVector;
}

/// Where a tile lies in a block's memory.
struct TileRoom {
  float* values = nullptr;
  std::byte* packed = nullptr;
  std::byte* codes = nullptr;  ///< not yet packed; where nothing is packed, the same as `packed`
};

/// Whether codes are packed in planes, and so need a place before.
template <typename Coder>
SOTTO_HOST_DEVICE bool in_planes(const Coder& coder) {
  if constexpr (Coder::kBytes == 1) {
    return coder.bits() < 8;
  } else {
    return false;
  }
}

template <typename Coder>
SOTTO_HOST_DEVICE std::uint32_t tile_room_bytes(const Coder& coder, std::uint32_t count,
                                                bool with_values) {
  return (with_values ? rounded_up(count * sizeof(float)) + kVector : 0) +
         rounded_up(coded_bytes(coder, count)) + kVector +
         (in_planes(coder) && with_values ? rounded_up(count) : 0);
}

/// Cuts `memory`, which begins at a multiple of 16; `values` and `packed` are the tile's own
/// places, null without values.
template <typename Coder>
SOTTO_HOST_DEVICE TileRoom tile_room(std::byte* memory, const Coder& coder, std::uint32_t count,
                                     const float* values, const std::byte* packed) {
  TileRoom room;
  if (values != nullptr) {
    room.values = reinterpret_cast<float*>(memory + phase_of(values));
    memory += rounded_up(count * sizeof(float)) + kVector;
  }
  room.packed = memory + phase_of(packed);
  room.codes =
      in_planes(coder) ? memory + rounded_up(coded_bytes(coder, count)) + kVector : room.packed;
  return room;
}

/// values ← from + more, or `from` where `more` is null. see(i, value) is called for each.
template <typename See>
SOTTO_HOST_DEVICE void load_values(const float* from, const float* more, std::uint32_t count,
                                   float* values, std::uint32_t thread, std::uint32_t threads,
                                   const See& see) {
  const std::uint32_t phase = phase_of(from);
  const bool together = more == nullptr || phase_of(more) == phase;
  const auto one = [&](std::uint32_t i) {
    const float value = more == nullptr ? from[i] : from[i] + more[i];
    values[i] = value;
    see(i, value);
  };
  const auto four = [&](std::uint32_t i) {
    FourFloats value = *reinterpret_cast<const FourFloats*>(from + i);
    if (more != nullptr) {
      const FourFloats other = *reinterpret_cast<const FourFloats*>(more + i);
      value = {value.x + other.x, value.y + other.y, value.z + other.z, value.w + other.w};
    }
    *reinterpret_cast<FourFloats*>(values + i) = value;
    see(i, value.x);
    see(i + 1, value.y);
    see(i + 2, value.z);
    see(i + 3, value.w);
  };
  sweep(count, together ? unaligned_floats(phase, count) : count, thread, threads, one, four);
}

template <std::uint32_t kBytes>
SOTTO_HOST_DEVICE void store_code(std::byte* codes, std::uint32_t i, std::uint32_t code) {
  if constexpr (kBytes == 1) {
    codes[i] = static_cast<std::byte>(code);
  } else if constexpr (kBytes == 2) {
    store_u16(codes + 2 * i, code);
  } else {
    store_u32(codes + 4 * i, code);
  }
}

template <typename Coder>
SOTTO_HOST_DEVICE std::uint32_t load_code(const Coder& coder, const std::byte* packed,
                                          std::uint32_t count, std::uint32_t i) {
  if constexpr (Coder::kBytes == 1) {
    return packed_code(packed, count, coder.bits(), i);
  } else if constexpr (Coder::kBytes == 2) {
    return load_u16(packed + 2 * i);
  } else {
    return load_u32(packed + 4 * i);
  }
}

/// Codes the values in `room`, which are elements `first` … of the noise, and where `residual`
/// replaces each by what its code leaves out. Returns for how many counts(value, clamped) is true.
template <typename Coder, typename Counts>
SOTTO_HOST_DEVICE std::uint32_t code_values(const Coder& coder, const RandomKey& key,
                                            std::size_t first, std::uint32_t count,
                                            const TileRoom& room, bool residual,
                                            std::uint32_t thread, std::uint32_t threads,
                                            const Counts& counts) {
  std::uint32_t found = 0;
  const auto one = [&](std::uint32_t i, std::uint32_t random) {
    const float value = room.values[i];
    bool clamped = false;
    const std::uint32_t code = coder.code_of(value, random, clamped);
    store_code<Coder::kBytes>(room.codes, i, code);
    found += counts(value, clamped) ? 1U : 0U;
    if (residual) {
      room.values[i] = coder.residual(value, code);
    }
  };
  if (coder.noisy()) {
    each_noise(key, first, count, thread, threads, one);
  } else {
    for (std::uint32_t i = thread; i < count; i += threads) {
      one(i, 0);
    }
  }
  return found;
}

/// What follows the coding: packs, and carries the codes to `packed` and, where it is not null, the
/// values to `residual`.
template <typename Block, typename Coder>
SOTTO_HOST_DEVICE void store_tile(const Block& block, const Coder& coder, const TileRoom& room,
                                  std::uint32_t count, std::byte* packed, float* residual) {
  if (in_planes(coder)) {
    if constexpr (Coder::kBytes == 1) {
      block.each([&](std::uint32_t thread) {
        pack_planes(room.codes, count, coder.bits(), room.packed, thread, block.threads());
      });
    }
  }
  block.each([&](std::uint32_t thread) {
    move_bytes(room.packed, packed, coded_bytes(coder, count), thread, block.threads());
    if (residual != nullptr) {
      move_bytes(reinterpret_cast<const std::byte*>(room.values),
                 reinterpret_cast<std::byte*>(residual),
                 count * static_cast<std::uint32_t>(sizeof(float)), thread, block.threads());
    }
  });
}

/// Brings a tile's packed codes into the block's memory.
template <typename Block, typename Coder>
SOTTO_HOST_DEVICE void fetch_tile(const Block& block, const Coder& coder, const std::byte* packed,
                                  std::uint32_t count, const TileRoom& room) {
  block.each([&](std::uint32_t thread) {
    move_bytes(packed, room.packed, coded_bytes(coder, count), thread, block.threads());
  });
}

/// y ← y + a × the values of the codes that were fetched.
template <typename Block, typename Coder>
SOTTO_HOST_DEVICE void add_tile(const Block& block, const Coder& coder, float a,
                                const TileRoom& room, std::uint32_t count, float* y) {
  const auto sum = [&](std::uint32_t i, float value) {
    return coder.axpy(a, load_code(coder, room.packed, count, i), value);
  };
  block.each([&](std::uint32_t thread) {
    const auto one = [&](std::uint32_t i) { y[i] = sum(i, y[i]); };
    const auto four = [&](std::uint32_t i) {
      FourFloats* at = reinterpret_cast<FourFloats*>(y + i);
      const FourFloats old = *at;
      *at = {sum(i, old.x), sum(i + 1, old.y), sum(i + 2, old.z), sum(i + 3, old.w)};
    };
    sweep(count, unaligned_floats(phase_of(y), count), thread, block.threads(), one, four);
  });
}

}  // namespace sotto::cuda
// NOLINTEND(bugprone-implicit-widening-of-multiplication-result)
