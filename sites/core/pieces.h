// Long vectors, worked on so that the memory is read and written once: all that is done with a
// piece is done while it is in the cache.
//
// Pure functions, for the mixings of sites.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>

#include <sotto/kernels/ops.h>

namespace sotto::sites {

/// Calls work(first, count) for pieces that cover `size` elements, in order. Whether all returned
/// true.
template <typename Work>
bool by_piece(const Ops& ops, std::size_t size, const Work& work) {
  bool all = true;
  for (std::size_t first = 0; first < size; first += ops.piece()) {
    all = work(first, std::min(ops.piece(), size - first)) && all;
  }
  return all;
}

/// Σ term(k) over k < size in double precision, always in one order: a sum for each of eight lanes,
/// which do not wait for each other.
template <typename Term>
double wide_sum(std::size_t size, const Term& term) {
  constexpr std::size_t kLanes = 8;
  std::array<double, kLanes> sums{};
  std::size_t k = 0;
  for (; k + kLanes <= size; k += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      sums[lane] += term(k + lane);
    }
  }
  for (; k < size; ++k) {
    sums[k % kLanes] += term(k);
  }
  double total = 0;
  for (const double sum : sums) {
    total += sum;
  }
  return total;
}

}  // namespace sotto::sites
