// Changes of counts as bytes, without loss: those that are not 0, with their places.
//
//   number     varint  of counts that change
//   and for each of them, ascending:
//   gap        varint  counts that do not change since the one before
//   change     varint  by zigzag; not 0
//
// Varints and zigzag are those of base/varint.h. Gaps take at most a byte for each count, and at
// most 5 for each that changes.
//
// Pure functions; thread-safe. Nothing is allocated.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <sotto/base/status.h>

namespace sotto {

/// Bytes that the changes of `counts` counts take at most, of which `most` or fewer change.
std::size_t max_change_bytes(std::size_t counts, std::size_t most);

/// What was encoded.
struct EncodedChanges {
  std::size_t changes = 0;  ///< number of counts that change
  std::size_t bytes = 0;
};

/// Encodes now − before, of counts that are as many; `out` has room as max_change_bytes says.
EncodedChanges encode_changes(std::span<const std::int32_t> before,
                              std::span<const std::int32_t> now, std::span<std::byte> out);

/// Fault::malformed unless `bytes` are changes of `counts` counts.
Status check_changes(std::span<const std::byte> bytes, std::size_t counts);

/// Adds changes that check_changes has passed for as many counts.
void add_changes(std::span<const std::byte> bytes, std::span<std::int32_t> counts);

}  // namespace sotto
