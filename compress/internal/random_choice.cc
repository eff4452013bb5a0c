#include "random_choice.h"

#include <algorithm>
#include <array>

#include "permutation.h"

namespace sotto::internal {
namespace {

/// Calls visit(order, place) for the first `count` places of a permutation.
template <typename Visit>
void for_each_place(const KeyedPermutation& permutation, std::size_t count, const Visit& visit) {
  std::array<std::uint32_t, 256> room{};
  for (std::size_t first = 0; first < count; first += room.size()) {
    const auto places = std::span(room).first(std::min(room.size(), count - first));
    permutation.places(first, places);
    for (std::size_t i = 0; i < places.size(); ++i) {
      visit(first + i, places[i]);
    }
  }
}

}  // namespace

std::uint64_t selection_key(RandomKey key) {
  key.purpose = Purpose::select;
  const PhiloxCounter words = key.block(0);
  return words[0] | (std::uint64_t{words[1]} << 32);
}

void RandomChoice::choose(std::uint64_t key, std::size_t elements, std::size_t count) {
  entries_.resize(count);
  ends_.assign((elements + kBlock - 1) / kBlock, 0);
  if (elements == 0) {
    return;
  }
  // Twice: counting needs no memory, and a place takes less time than fetching it again would.
  const KeyedPermutation permutation(key, elements);
  for_each_place(permutation, count,
                 [&](std::size_t, std::uint32_t place) { ++ends_[place / kBlock]; });
  std::size_t begin = 0;
  for (std::size_t& end : ends_) {  // for now, where the block begins
    const std::size_t size = end;
    end = begin;
    begin += size;
  }
  for_each_place(permutation, count, [&](std::size_t order, std::uint32_t place) {
    entries_[ends_[place / kBlock]++] = {place, static_cast<std::uint32_t>(order)};
  });
}

}  // namespace sotto::internal
