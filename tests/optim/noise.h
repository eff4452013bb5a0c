// Gradients that are drawn, and do not depend on the model: what nodes end at is then the sum of
// known steps, whatever they send.
#pragma once

#include <cstdint>
#include <span>

#include <sotto/base/philox.h>
#include <sotto/sim/lockstep.h>

namespace sotto::test {

/// Normal numbers, another mean at each node.
inline GradientFunction noise_of(std::uint64_t seed) {
  return [seed](Rank rank, Round round, std::span<const float>, std::span<float> g) {
    RandomStream stream({.seed = seed, .rank = rank, .round = round, .purpose = Purpose::test});
    for (float& value : g) {
      value = static_cast<float>(stream.normal() + 0.3 * rank);
    }
  };
}

}  // namespace sotto::test
