#include "payload.h"

#include <fmt/format.h>

#include <sotto/kernels/ops.h>

namespace sotto::internal {

Status malformed(const std::string& message) { return {Fault::malformed, message}; }

Status non_finite(const std::string& message) { return {Fault::non_finite, message}; }

Status check_length(std::string_view family, std::size_t actual, std::size_t expected) {
  if (actual == expected) {
    return {};
  }
  return malformed(
      fmt::format("{}: payload of {} bytes where {} are due", family, actual, expected));
}

bool padding_is_zero(std::span<const std::byte> codes, std::size_t count, int bits) {
  const std::size_t tail = count % kPackGroup;
  if (bits == 8 || tail % 8 == 0) {
    return true;
  }
  const std::size_t plane_bytes = tail / 8 + 1;
  const auto planes = codes.last(plane_bytes * static_cast<std::size_t>(bits));
  for (std::size_t last = plane_bytes - 1; last < planes.size(); last += plane_bytes) {
    if ((planes[last] >> (tail % 8)) != std::byte{0}) {
      return false;
    }
  }
  return true;
}

}  // namespace sotto::internal
