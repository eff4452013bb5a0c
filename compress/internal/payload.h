// What every decoder does with its payload: check the length, take scalars out of bytes that need
// not be aligned, look at padding. Pure functions; thread-safe.
#pragma once

#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include <sotto/base/bytes.h>
#include <sotto/base/status.h>

namespace sotto::internal {

Status malformed(const std::string& message);
Status non_finite(const std::string& message);

/// Fault::malformed unless `actual` equals `expected`.
Status check_length(std::string_view family, std::size_t actual, std::size_t expected);

/// The scalar at index `index` of an array that starts at `bytes`.
template <WireScalar T>
T load(std::span<const std::byte> bytes, std::size_t index) {
  T value{};
  std::memcpy(&value, bytes.subspan(index * sizeof(T), sizeof(T)).data(), sizeof(T));
  return value;
}

/// True when the unused bits of `count` packed codes (kernels/ops.h) are zero.
bool padding_is_zero(std::span<const std::byte> codes, std::size_t count, int bits);

}  // namespace sotto::internal
