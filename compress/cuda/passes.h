// What a block of threads does in each pass of a codec, on a host and on the device.
//
// A block's memory is cut, in this order, into the scale, room for measuring, the parts of what is
// measured, and the tile.
#pragma once

#include <cstddef>
#include <cstdint>

#include <sotto/compress/cuda/codec.h>
#include <sotto/compress/cuda/formats.h>

namespace sotto::cuda {

/// A vector that is encoded. With `residual` it is from + more, otherwise `from`.
struct EncodeTask {
  const float* from = nullptr;
  const float* more = nullptr;  ///< null: nothing is added
  float* residual = nullptr;    ///< null: not wanted
  RandomKey key;
  std::byte* out = nullptr;
  Outcome* outcome = nullptr;
};

inline constexpr std::uint32_t kScaleRoom = 32;
inline constexpr std::uint32_t kPartsRoom = 16;

template <typename Format>
SOTTO_HOST_DEVICE constexpr std::uint32_t measure_room() {
  static_assert(sizeof(typename Format::Scale) <= kScaleRoom);
  return Format::kMeasured ? kScaleRoom + kMeasureBytes + kPartsRoom : 0;
}

/// A block's memory for encoding tiles of `count` elements.
template <typename Format>
SOTTO_HOST_DEVICE std::uint32_t encode_room(const Format& format, std::uint32_t count) {
  const auto coder = format.coder(typename Format::Scale{});
  return measure_room<Format>() + tile_room_bytes(coder, count, true);
}

SOTTO_HOST_DEVICE std::uint64_t fault_at(std::size_t place, Fault fault) {
  return static_cast<std::uint64_t>(place) << 8 | static_cast<std::uint64_t>(fault);
}

/// values ← the tile; elements that are not finite go to the outcome.
template <typename Block>
SOTTO_HOST_DEVICE void load_tile(const Block& block, const EncodeTask& task, std::size_t first,
                                 std::uint32_t count, float* values) {
  block.each([&](std::uint32_t thread) {
    // Found once a thread: a vector that is not finite throughout costs no more.
    std::size_t bad = Outcome::kSound;
    load_values(task.from + first, task.more == nullptr ? nullptr : task.more + first, count,
                values, thread, block.threads(), [&](std::uint32_t i, float value) {
                  bad = !is_finite(value) && first + i < bad ? first + i : bad;
                });
    if (bad != Outcome::kSound) {
      lower_to(&task.outcome->fault, fault_at(bad, Fault::non_finite));
    }
  });
}

/// Encodes a whole tile. The scale of its chunk is `given` or, where that is null, measured: then
/// the tile is the chunk.
template <typename Block, typename Format>
SOTTO_HOST_DEVICE void encode_tile(const Block& block, const Format& format,
                                   const Layout<Format>& layout, const EncodeTask& task,
                                   const typename Format::Scale* given, std::size_t index,
                                   std::byte* memory) {
  using Scale = typename Format::Scale;
  const auto tile = layout.tile_at(index);
  std::byte* out = task.out + layout.codes_at(tile.chunk, tile.first);
  float* residual = task.residual == nullptr ? nullptr : task.residual + tile.first;
  auto* shared = reinterpret_cast<Scale*>(memory);
  std::byte* room_memory = memory + measure_room<Format>();
  // Values lie in front of the codes; the place of these depends on nothing but bits.
  auto* values = reinterpret_cast<float*>(room_memory + phase_of(task.from + tile.first));
  load_tile(block, task, tile.first, tile.count, values);
  if constexpr (Format::kMeasured) {
    if (given == nullptr) {
      auto* parts = reinterpret_cast<typename Format::Part*>(memory + kScaleRoom + kMeasureBytes);
      format.measure(block, values, tile.count, memory + kScaleRoom, parts);
      block.each([&](std::uint32_t thread) {
        if (thread == 0) {
          *shared = format.settle(parts, Format::parts_of(tile.count), values, tile.count);
          format.write_scale(*shared, task.out + layout.scale_at(tile.chunk));
        }
      });
    }
  }
  Scale scale{};
  if constexpr (Format::kMeasured) {
    scale = given == nullptr ? *shared : given[tile.chunk];
  }
  const auto coder = format.coder(scale);
  const TileRoom room = tile_room(room_memory, coder, tile.count, task.from + tile.first, out);
  block.each([&](std::uint32_t thread) {
    const std::uint32_t saturated = code_values(
        coder, task.key, tile.first, tile.count, room, residual != nullptr, thread, block.threads(),
        [&](float value, bool clamped) { return format.counts(scale, value, clamped); });
    if (saturated > 0) {
      add_to(&task.outcome->saturated, saturated);
    }
  });
  store_tile(block, coder, room, tile.count, out, residual);
}

/// The first of three passes over chunks that are longer than a tile: from + more, to the residual
/// where one is wanted, and the tile's part.
template <typename Block, typename Format>
SOTTO_HOST_DEVICE void measure_tile(const Block& block, const Format& format,
                                    const Layout<Format>& layout, const EncodeTask& task,
                                    typename Format::Part* parts, std::size_t index,
                                    std::byte* memory) {
  const auto tile = layout.tile_at(index);
  auto* values =
      reinterpret_cast<float*>(memory + measure_room<Format>() + phase_of(task.from + tile.first));
  load_tile(block, task, tile.first, tile.count, values);
  if (task.residual != nullptr && task.more != nullptr) {
    block.each([&](std::uint32_t thread) {
      move_bytes(reinterpret_cast<const std::byte*>(values),
                 reinterpret_cast<std::byte*>(task.residual + tile.first),
                 tile.count * static_cast<std::uint32_t>(sizeof(float)), thread, block.threads());
    });
  }
  format.measure(block, values, tile.count, memory + kScaleRoom, parts + index);
}

/// The second: a chunk's scale, from the parts of its tiles. One thread does it.
template <typename Format>
SOTTO_HOST_DEVICE void settle_chunk(const Format& format, const Layout<Format>& layout,
                                    const EncodeTask& task, const typename Format::Part* parts,
                                    typename Format::Scale* scales, std::size_t chunk) {
  const std::size_t size = layout.chunks.size(chunk);
  const std::size_t tiles = (size + layout.tile - 1) / layout.tile;
  const float* values = task.from + layout.chunks.first(chunk);
  scales[chunk] = format.settle(parts + chunk * layout.per_chunk, tiles, values, size);
  format.write_scale(scales[chunk], task.out + layout.scale_at(chunk));
}

/// Finds what a decoder refuses in chunk `chunk`, and for the first one in the prefix.
template <typename Format>
SOTTO_HOST_DEVICE void judge_chunk(const Format& format, const Layout<Format>& layout,
                                   const std::byte* bytes, std::size_t chunk, Outcome* outcome) {
  SOTTO_UNROLL
  for (std::uint32_t k = 0; k < kMostPrefix; ++k) {
    if (chunk == 0 && k < layout.prefix_size && bytes[k] != layout.prefix[k]) {
      lower_to(&outcome->fault, fault_at(0, Fault::malformed));
    }
  }
  if (chunk >= layout.chunks.count()) {
    return;
  }
  const Fault fault = format.judge(format.read_scale(bytes + layout.scale_at(chunk)));
  if (fault != Fault::none) {
    lower_to(&outcome->fault, fault_at(chunk, fault));
  } else if (!padded_with_zeros(format, layout, chunk, bytes)) {
    lower_to(&outcome->fault, fault_at(chunk, Fault::malformed));
  }
}

/// The codes of a tile that stand for values by themselves: those that are not finite.
template <typename Block, typename Format>
SOTTO_HOST_DEVICE void judge_tile(const Block& block, const Format& format,
                                  const Layout<Format>& layout, const std::byte* bytes,
                                  std::size_t index, Outcome* outcome, std::byte* memory) {
  const auto tile = layout.tile_at(index);
  const auto coder = format.coder(typename Format::Scale{});
  const std::byte* packed = bytes + layout.codes_at(tile.chunk, tile.first);
  const TileRoom room = tile_room(memory, coder, tile.count, nullptr, packed);
  fetch_tile(block, coder, packed, tile.count, room);
  block.each([&](std::uint32_t thread) {
    for (std::uint32_t i = thread; i < tile.count; i += block.threads()) {
      if (!coder.finite(load_code(coder, room.packed, tile.count, i))) {
        lower_to(&outcome->fault, fault_at(tile.first + i, Fault::non_finite));
      }
    }
  });
}

/// y ← y + scale × C of one tile of an encoding that was found sound.
template <typename Block, typename Format>
SOTTO_HOST_DEVICE void decode_tile(const Block& block, const Format& format,
                                   const Layout<Format>& layout, const std::byte* bytes,
                                   float scale, float* y, std::size_t index, std::byte* memory) {
  const auto tile = layout.tile_at(index);
  const auto coder = format.coder(format.read_scale(bytes + layout.scale_at(tile.chunk)));
  const std::byte* packed = bytes + layout.codes_at(tile.chunk, tile.first);
  const TileRoom room = tile_room(memory, coder, tile.count, nullptr, packed);
  fetch_tile(block, coder, packed, tile.count, room);
  add_tile(block, coder, scale, room, tile.count, y + tile.first);
}

}  // namespace sotto::cuda
