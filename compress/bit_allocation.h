// Which encoding each part of a model gets, so that all take the fewest bytes at a bounded loss, or
// lose least in a bounded number of bytes: the multiple-choice knapsack (Sinha and Zoltners 1979),
// solved by dynamic programming over what is bounded, rounded up, so that no choice exceeds its
// bound.
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

/// What is bounded is told apart in this many steps between the least and the bound.
inline constexpr std::size_t kAllocationSteps = 4096;

/// For each part the place of its option, with the fewest bytes of all whose losses sum up to
/// `most_loss` or less, but for what rounding up by a step a part leaves out; of equal ones that
/// with the least loss. Options with a loss that is not finite are not taken. None where even the
/// options of least loss exceed the bound. Infinity bounds nothing. Time: options ×
/// kAllocationSteps.
std::optional<std::vector<std::size_t>> allocate_bits(
    std::span<const std::vector<EncodingOption>> parts, double most_loss);

/// For each part the place of its option, with the least sum of losses of all whose bytes sum up to
/// `most_bytes` or less, but for what rounding up by a step a part leaves out: what stays of the
/// bytes is given to the parts that gain most by it. Options with a loss that is not finite are not
/// taken. None where even the shortest options exceed the bound.
std::optional<std::vector<std::size_t>> allocate_bytes(
    std::span<const std::vector<EncodingOption>> parts, std::size_t most_bytes);

}  // namespace sotto
