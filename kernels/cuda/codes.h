// Vectors to packed codes and back, tile by tile: what one block of threads does of it.
#pragma once

#include <cstddef>
#include <cstdint>

#include <sotto/kernels/cuda/tile.h>

namespace sotto::cuda {

/// A vector that is coded.
struct CodeTask {
  const float* from = nullptr;
  float* residual = nullptr;  ///< null: not wanted
  std::size_t count = 0;
  RandomKey key;
  std::size_t first = 0;  ///< the first element's number in the noise
  std::byte* out = nullptr;
  std::uint64_t* saturated = nullptr;  ///< null: not wanted
};

/// Elements of tile `index` of `count`.
SOTTO_HOST_DEVICE std::uint32_t tile_count(std::size_t count, std::size_t index) {
  const std::size_t rest = count - index * kTile;
  return static_cast<std::uint32_t>(rest < kTile ? rest : kTile);
}

/// Codes tile `index`. `memory` is tile_room_bytes(coder, kTile, true) long.
template <typename Block, typename Coder>
SOTTO_HOST_DEVICE void code_part(const Block& block, const Coder& coder, const CodeTask& task,
                                 std::size_t index, std::byte* memory) {
  const std::size_t begin = index * kTile;
  const std::uint32_t count = tile_count(task.count, index);
  const float* from = task.from + begin;
  std::byte* out = task.out + coded_bytes(coder, kTile) * index;
  const TileRoom room = tile_room(memory, coder, count, from, out);
  block.each([&](std::uint32_t thread) {
    load_values(from, nullptr, count, room.values, thread, block.threads(),
                [](std::uint32_t, float) {});
  });
  block.each([&](std::uint32_t thread) {
    const std::uint32_t clamped =
        code_values(coder, task.key, task.first + begin, count, room, task.residual != nullptr,
                    thread, block.threads(), [](float, bool sat) { return sat; });
    if (clamped > 0 && task.saturated != nullptr) {
      add_to(task.saturated, clamped);
    }
  });
  store_tile(block, coder, room, count, out,
             task.residual == nullptr ? nullptr : task.residual + begin);
}

/// y ← y + a × values, of tile `index` of `length` elements. `memory` is tile_room_bytes(coder,
/// kTile, false) long.
template <typename Block, typename Coder>
SOTTO_HOST_DEVICE void add_part(const Block& block, const Coder& coder, float a,
                                const std::byte* codes, float* y, std::size_t length,
                                std::size_t index, std::byte* memory) {
  const std::uint32_t count = tile_count(length, index);
  const std::byte* packed = codes + coded_bytes(coder, kTile) * index;
  const TileRoom room = tile_room(memory, coder, count, nullptr, packed);
  fetch_tile(block, coder, packed, count, room);
  add_tile(block, coder, a, room, count, y + index * kTile);
}

/// Bytes that the codes of a whole vector take.
template <typename Coder>
std::size_t whole_bytes(const Coder& coder, std::size_t count) {
  return count / kTile * coded_bytes(coder, kTile) +
         coded_bytes(coder, static_cast<std::uint32_t>(count % kTile));
}

}  // namespace sotto::cuda
