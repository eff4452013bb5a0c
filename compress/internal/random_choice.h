// The elements that `randk` chooses (randk.h), and a walk over them. Pure functions; thread-safe.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include <sotto/base/philox.h>

#include "permutation.h"

namespace sotto::internal {

/// Elements that are fetched from all over the vector before the first of them is needed.
inline constexpr std::size_t kChosenAtOnce = 64;

/// The key of the permutation whose first elements are chosen.
inline std::uint64_t selection_key(RandomKey key) {
  key.purpose = Purpose::select;
  const PhiloxCounter words = key.block(0);
  return words[0] | (std::uint64_t{words[1]} << 32);
}

/// Calls visit(i, element) for the elements that are chosen i-th, begin ≤ i < end, of those at x.
template <typename Visit>
void for_each_chosen(const KeyedPermutation& chosen, const float* x, std::size_t begin,
                     std::size_t end, const Visit& visit) {
  std::array<std::uint32_t, kChosenAtOnce> batch{};
  for (; begin < end; begin += kChosenAtOnce) {
    const auto places = std::span(batch).first(std::min(kChosenAtOnce, end - begin));
    chosen.places(begin, places);
    for (const std::uint32_t place : places) {
      __builtin_prefetch(x + place, 1);
    }
    for (std::size_t i = 0; i < places.size(); ++i) {
      visit(begin + i, places[i]);
    }
  }
}

}  // namespace sotto::internal
