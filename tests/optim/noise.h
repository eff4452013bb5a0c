// Vectors that are drawn; and gradients that are, and do not depend on the model: what nodes end at
// is then the sum of known steps, whatever they send.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <sotto/base/philox.h>
#include <sotto/sim/lockstep.h>

namespace sotto::test {

/// Standard normal numbers.
inline std::vector<float> gaussian(std::uint64_t seed, std::size_t count) {
  RandomStream stream({.seed = seed, .purpose = Purpose::test});
  std::vector<float> values(count);
  std::ranges::generate(values, [&] { return static_cast<float>(stream.normal()); });
  return values;
}

/// Normal numbers, another mean at each node.
inline GradientFunction noise_of(std::uint64_t seed) {
  return [seed](Rank rank, Round round, std::span<const float>, std::span<float> g) {
    RandomStream stream({.seed = seed, .rank = rank, .round = round, .purpose = Purpose::test});
    for (float& value : g) {
      value = static_cast<float>(stream.normal() + 0.3 * rank);
    }
  };
}

/// Node 0 shouts: its gradients are a thousand times as long.
inline GradientFunction shouted(GradientFunction gradient) {
  return [gradient = std::move(gradient)](Rank rank, Round round, std::span<const float> x,
                                          std::span<float> g) {
    gradient(rank, round, x, g);
    for (float& value : g) {
      value *= rank == 0 ? 1000.0F : 1.0F;
    }
  };
}

}  // namespace sotto::test
