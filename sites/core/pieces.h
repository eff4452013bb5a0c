// Long vectors, worked on so that the memory is read and written once: all that is done with a
// piece is done while it is in the cache.
//
// Pure functions, for the mixings of sites.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>
#include <span>

#include <sotto/base/shared_flag.h>
#include <sotto/base/status.h>
#include <sotto/compress/compressor.h>
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

/// Shows the sum of the terms, decoded, to take(first, sum) as Compressor::decode_sum does. Whether
/// all calls returned true; a fault of the encoding, before the first one.
template <typename Take>
Result<bool> decode_by_piece(const Compressor& compressor, std::span<const Compressor::Term> terms,
                             std::span<float> room, const Take& take) {
  SharedFlag failed;
  const auto visit = [&](std::size_t first, std::span<const float> sum) {
    if (!take(first, sum)) {
      failed.raise();
    }
  };
  std::size_t refused = 0;
  const Status status = compressor.decode_sum(terms, room, std::cref(visit), refused);
  return status.ok() ? Result<bool>(!failed.raised()) : status;
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
