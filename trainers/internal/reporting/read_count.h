// How many items follow, in bytes that are not trusted. A pure function.
#pragma once

#include <cstddef>
#include <cstdint>

#include <sotto/base/bytes.h>

namespace sotto::internal {

/// A count of items of `item_bytes` each that the reader can still hold; 0 otherwise.
inline std::size_t read_count(ByteReader& in, std::size_t item_bytes) {
  const auto count = in.read<std::uint64_t>();
  return count <= in.remaining() / item_bytes ? static_cast<std::size_t>(count) : 0;
}

}  // namespace sotto::internal
