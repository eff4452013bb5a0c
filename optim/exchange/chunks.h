// How a vector is cut into n chunks, one for each node. Pure functions; thread-safe.
//
// The first d mod n chunks are one element longer than the others; with d < n some are empty.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>

namespace sotto {

/// A part of a vector, in elements.
struct Chunk {
  std::size_t offset = 0;
  std::size_t size = 0;

  /// The chunk of a vector that is long enough.
  template <typename T>
  std::span<T> of(std::span<T> whole) const {
    return whole.subspan(offset, size);
  }
};

/// Chunk `index`, 0 … nodes − 1, of `dimension` elements.
inline Chunk chunk_of(std::size_t dimension, int nodes, int index) {
  const auto n = static_cast<std::size_t>(nodes);
  const auto i = static_cast<std::size_t>(index);
  const std::size_t size = dimension / n;
  const std::size_t longer = dimension % n;
  return {.offset = i * size + std::min(i, longer), .size = size + (i < longer ? 1 : 0)};
}

/// Size of the longest chunk.
inline std::size_t longest_chunk(std::size_t dimension, int nodes) {
  return chunk_of(dimension, nodes, 0).size;
}

}  // namespace sotto
