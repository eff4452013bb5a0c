#include "packed.h"

#include <algorithm>

#include <sotto/kernels/ops.h>

namespace sotto::internal {

std::uint32_t code_at(std::span<const std::byte> codes, std::size_t count, int bits,
                      std::size_t element) {
  if (bits == 8) {
    return std::to_integer<std::uint32_t>(codes[element]);
  }
  const std::size_t group = element / kPackGroup;
  const std::size_t in_group = element % kPackGroup;
  const std::size_t plane_bytes = (std::min(kPackGroup, count - group * kPackGroup) + 7) / 8;
  std::size_t byte = group * 8 * static_cast<std::size_t>(bits) + in_group / 8;
  std::uint32_t code = 0;
  for (int plane = 0; plane < bits; ++plane, byte += plane_bytes) {
    code |= (std::to_integer<std::uint32_t>(codes[byte]) >> (in_group % 8) & 1U) << plane;
  }
  return code;
}

}  // namespace sotto::internal
