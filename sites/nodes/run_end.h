// How a run of nodes that come and go ended, as a folder and a store keep it. A plain value, and
// pure functions; thread-safe.
#pragma once

#include <cstdint>

#include <sotto/base/bytes.h>
#include <sotto/base/ids.h>

namespace sotto {

/// How a run ended.
struct RunEnd {
  Round steps = 0;        ///< steps that it had made
  bool all_left = false;  ///< no node of it was left
  auto operator<=>(const RunEnd&) const = default;
};

/// Appends an end: steps u64, and whether all have left, u8.
inline void write_end(const RunEnd& end, ByteBuffer& out) {
  out.write(end.steps);
  out.write(static_cast<std::uint8_t>(end.all_left ? 1 : 0));
}

/// The end that write_end has written; zeros once the reader has failed.
inline RunEnd read_end(ByteReader& in) {
  return {.steps = in.read<Round>(), .all_left = in.read<std::uint8_t>() != 0};
}

}  // namespace sotto
