// One code out of packed ones (kPackGroup in kernels/ops.h). A pure function; thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace sotto::internal {

/// The code of `element` of `count`; `codes` is packed_bytes(count, bits) long.
std::uint32_t code_at(std::span<const std::byte> codes, std::size_t count, int bits,
                      std::size_t element);

}  // namespace sotto::internal
