// Which encoding each part of a model gets, so that all take the fewest bytes at a bounded loss:
// the multiple-choice knapsack (Sinha and Zoltners 1979), solved by dynamic programming over losses
// that are rounded up, so that no choice exceeds its bound.
//
// Pure functions; thread-safe.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace sotto {

/// One way to encode a part.
struct EncodingOption {
  std::size_t bytes = 0;
  double loss = 0;  ///< predicted change of the loss; may be negative
};

/// Steps in which losses between the least and the bound are told apart.
inline constexpr std::size_t kLossSteps = 4096;

/// For each part the place of its option, with the fewest bytes of all whose losses sum up to
/// `most_loss` or less, but for what rounding up by a step a part leaves out; of equal ones that
/// with the least loss. Options with a loss that is not finite are not taken. None where even the
/// options of least loss exceed the bound. Infinity bounds nothing. Time: options × kLossSteps.
std::optional<std::vector<std::size_t>> allocate_bits(
    std::span<const std::vector<EncodingOption>> parts, double most_loss);

}  // namespace sotto
