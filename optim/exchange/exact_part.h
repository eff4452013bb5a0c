// Elements that travel in full precision beside a compressed vector: a part behind its encoding.
//
// Wire, after the encoding: nothing else where there are no such elements; otherwise, with those
// that are 0 left out,
//   count        varint    of the elements sent
//   gaps         varints   each one's number among all such elements, less that of the one before;
//                          the first one's counts from −1, so that no gap is 0
//   values       float32
//   length       32 bits   of all that, without itself; 0 where no element is sent
// Varints are those of base/varint.h. Gaps take at most one byte for each element, so that a part
// is never longer than max_exact_part_bytes.
//
// Pure functions; thread-safe. Nothing is allocated.
#pragma once

#include <cstddef>
#include <span>

#include <sotto/base/status.h>
#include <sotto/optim/exchange/chunks.h>

namespace sotto {

/// Elements of a vector that are exchanged in full precision.
struct ExactElements {
  std::span<const std::size_t> at;  ///< indices of the elements, ascending
  std::span<float> values;          ///< values of the elements, in the order of `at`

  bool empty() const { return at.empty(); }
  /// The elements that lie in a chunk of the vector.
  ExactElements in(const Chunk& chunk) const;
};

/// Bytes that the part of `elements` elements takes at most.
std::size_t max_exact_part_bytes(std::size_t elements);

/// Writes the part of `values` behind the first `bytes` of `payload`, which has room for
/// max_exact_part_bytes more. Returns the bytes of both.
std::size_t append_exact_part(std::span<const float> values, std::span<std::byte> payload,
                              std::size_t bytes);

/// Adds the values of the last part in `payload` to `values`, and returns the bytes before it.
/// Fault::malformed when it is none for that many values, Fault::non_finite for a NaN or an
/// infinity; `values` are then as they were.
Result<std::span<const std::byte>> add_exact_part(std::span<const std::byte> payload,
                                                  std::span<float> values);

/// The bytes before the last part of a payload; empty if the payload has none.
std::span<const std::byte> before_exact_part(std::span<const std::byte> payload);

}  // namespace sotto
