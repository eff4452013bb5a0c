// What every decoder does with its payload: check the length, copy runs of scalars out of bytes
// that need not be aligned, look at padding. Pure functions; thread-safe.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include <sotto/base/bytes.h>
#include <sotto/base/status.h>

namespace sotto::internal {

Status malformed(std::string message);
Status non_finite(std::string message);

/// Fault::malformed unless `actual` equals `expected`.
Status check_length(std::string_view family, std::size_t actual, std::size_t expected);

/// Scalars that are copied at a time: 4 KiB of floats stay in the first-level cache.
inline constexpr std::size_t kStage = 1024;

/// Calls visit(values, first) for consecutive runs of the scalars in `bytes`, a whole number of
/// them; `first` is the index of values[0].
template <WireScalar T, typename Visit>
void for_each_run(std::span<const std::byte> bytes, Visit&& visit) {
  std::array<T, kStage> stage;
  const std::size_t count = bytes.size() / sizeof(T);
  for (std::size_t first = 0; first < count; first += kStage) {
    const auto run = std::span(stage).first(std::min(kStage, count - first));
    std::memcpy(run.data(), bytes.data() + first * sizeof(T), run.size_bytes());
    visit(std::span<const T>(run), first);
  }
}

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
