#include "permutation.h"

#include <algorithm>
#include <array>
#include <bit>
#include <numeric>
#include <utility>

#include <sotto/base/check.h>
#include <sotto/base/philox.h>

namespace sotto::internal {
namespace {

constexpr std::uint32_t ones(int count) {
  return static_cast<std::uint32_t>((std::uint64_t{1} << count) - 1);
}

}  // namespace

KeyedPermutation::KeyedPermutation(std::uint64_t key, std::uint64_t size) : size_(size) {
  check(size >= 1 && size <= std::uint64_t{1} << 32, "KeyedPermutation: size outside 1 … 2^32");
  constexpr int kLeastBits = 8;
  const int bits = std::max(kLeastBits, static_cast<int>(std::bit_width(size - 1)));
  network_.low_bits = bits / 2;
  network_.low_mask = ones(network_.low_bits);
  network_.high_mask = ones(bits - network_.low_bits);
  const PhiloxKey philox_key{static_cast<std::uint32_t>(key),
                             static_cast<std::uint32_t>(key >> 32)};
  for (std::size_t i = 0; i < network_.keys.size(); ++i) {
    const PhiloxCounter words =
        philox4x32({static_cast<std::uint32_t>(i / 4), 0, 0, 0}, philox_key);
    network_.keys[i] = words[i % 4];
  }
}

void KeyedPermutation::places(std::uint64_t first, std::span<std::uint32_t> out) const {
  std::iota(out.begin(), out.end(), static_cast<std::uint32_t>(first));
  encipher(network_, out);
  std::array<std::uint32_t, 256> words{};
  std::array<std::uint32_t*, words.size()> targets{};
  for (; !out.empty(); out = out.subspan(std::min(words.size(), out.size()))) {
    std::size_t walking = 0;  // words beyond the size, and where they are wanted
    for (std::uint32_t& place : out.first(std::min(words.size(), out.size()))) {
      words[walking] = place;
      targets[walking] = &place;
      walking += static_cast<std::size_t>(place >= size_);
    }
    while (walking > 0) {
      encipher(network_, std::span(words).first(walking));
      const std::size_t before = std::exchange(walking, 0);
      for (std::size_t i = 0; i < before; ++i) {
        *targets[i] = words[i];
        words[walking] = words[i];
        targets[walking] = targets[i];
        walking += static_cast<std::size_t>(words[i] >= size_);
      }
    }
  }
}

std::uint64_t KeyedPermutation::operator()(std::uint64_t index) const {
  auto place = static_cast<std::uint32_t>(index);
  do {
    place = encipher(network_, place);
  } while (place >= size_);
  return place;
}

}  // namespace sotto::internal
