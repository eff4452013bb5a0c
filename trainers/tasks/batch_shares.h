// How many examples of a step each node takes, where nodes compute at different speeds. A pure
// function; thread-safe.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace sotto {

/// Examples of a batch at one node, at most.
inline constexpr std::size_t kMostBatch = std::size_t{1} << 16U;

/// Node i's part of `examples`, in proportion to its speed v_i: b_i = examples × v_i / Σ v, rounded
/// by largest remainders (of equal ones the lower ranks' first), and at least 1. They sum to
/// `examples`. Requires speeds that are finite and above 0, and no more of them than examples.
std::vector<std::size_t> share_examples(std::size_t examples, std::span<const double> speeds);

}  // namespace sotto
