// The payload of `topk` (topk.h has its layout), wherever the elements were chosen.
//
// Pure functions but for what they write; thread-safe. A payload is a view of the bytes it was read
// from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <sotto/base/status.h>

#include "rice.h"

namespace sotto::internal {

/// The longest encoding of k elements among `elements`, whatever their values are.
std::size_t topk_max_bytes(std::size_t k, std::size_t elements);

/// Writes the chosen of `elements` elements, by ascending index; returns the bytes used.
std::size_t write_topk(std::span<const std::uint32_t> indices, std::span<const float> values,
                       std::size_t elements, std::span<std::byte> out);

struct TopkPayload {
  std::span<const std::byte> values;  ///< k floats, finite, at any address
  std::span<const std::byte> coded;
  int p = 0;
  std::size_t elements = 0;

  /// Gives k indices below `elements`, ascending.
  RiceReader indices() const { return {coded, p, elements}; }
};

/// Judges all of `bytes`, which nobody vouches for. Fault::malformed, or Fault::non_finite.
Result<TopkPayload> read_topk(std::span<const std::byte> bytes, std::size_t k,
                              std::size_t elements);

}  // namespace sotto::internal
