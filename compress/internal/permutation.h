// A keyed permutation of 0 … size − 1 that can be evaluated at any point, without memory.
//
// A Feistel network on the smallest fitting power of two (at least 2^8, below which the halves get
// too narrow to mix), with round keys from Philox; results beyond the size are fed back until one
// lies within ("cycle walking": J. Black and P. Rogaway, "Ciphers with arbitrary finite domains",
// CT-RSA 2002). A walk follows the cycle that its start lies on, so it always ends, and all
// walks together visit each point at most once: evaluating the whole permutation takes at most
// max(2 size, 2^8) rounds of the network. A plain value; thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <sotto/kernels/feistel.h>

namespace sotto::internal {

class KeyedPermutation {
 public:
  /// Requires 1 ≤ size ≤ 2^32.
  KeyedPermutation(std::uint64_t key, std::uint64_t size);

  /// The place to which `index` < size goes.
  std::uint64_t operator()(std::uint64_t index) const;
  /// The places to which first, first + 1, … go: side by side, which is several times faster.
  void places(std::uint64_t first, std::span<std::uint32_t> out) const;

 private:
  std::uint64_t size_;
  FeistelNetwork network_;
};

}  // namespace sotto::internal
