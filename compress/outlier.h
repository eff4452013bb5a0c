// `outlier:B`: B bits an element on a grid through zero; what lies far out travels exactly.
//
// After EasyQuant (Tang et al. 2024, arXiv:2403.02775), which leaves a weight's outliers alone and
// fits the scale of the others by their error rather than by their range. In each chunk:
// - elements beyond k σ, σ the root of their mean square, travel as (index, value), and count as
//   zero in the grid;
// - the others become q = ⌊x/s + ½⌋ in −2^(B−1) … 2^(B−1) − 1, and s minimizes Σ (x − s q)²:
//   s = Σ q x / Σ q² for fixed q and q by s in turns, a few times, from a few starts of which the
//   first is the step that spans the range; the best pair is sent.
//
// Payload: B (1 byte), chunk length (4 bytes, 0 = the whole vector), number of outliers (4 bytes),
// Rice parameter (1 byte), then s (float32) of every chunk, the packed codes (kernels/ops.h) of
// every chunk, code q standing for (q − 2^(B−1)) × s, then the outliers' values (float32) and their
// indices, coded as in topk.h. By Chebyshev's inequality there are at most n / k² outliers among n
// elements, which bounds the payload: 11 % of them at k = 3, where Gaussian data have 0.3 %.
//
// Contraction. With N = 2^(B−1) − 1 and M the largest magnitude in the grid, the first start has
// step M/N and error at most min(|x|, step/2) an element, none at M: 1 − δ ≤ n / (n + 4 N²) for a
// chunk of n, as in quant.h. Fitting q or s never makes the error larger. On Gaussian data in
// chunks of 512 the error is 0.099 for 4 bits, where `quant:4,rounding=nearest` has 0.12.
// Steps are at least 2^-126 (`floor_per_element`); grids wider than float32's largest value are cut
// down (`saturated`).
// Thread safety and ownership: see Compressor. encode keeps a chunk and the outliers, allocated
// when they first grow.
#pragma once

#include <bit>
#include <cstddef>
#include <memory>

#include <sotto/compress/compressor.h>

namespace sotto {

inline constexpr std::uint16_t kOutlierWireId = 10;  ///< the compressor's number in frames

/// The shortest power of two for which a float32 a chunk costs at most 1 % of the codes.
constexpr std::size_t default_outlier_chunk(int bits) {
  return std::bit_ceil((std::size_t{3200} + static_cast<std::size_t>(bits) - 1) /
                       static_cast<std::size_t>(bits));
}

/// The settings of `outlier`.
struct OutlierOptions {
  int bits = 4;  ///< 2 … 8
  /// Elements that share a scale and a σ, up to 2^32 − 1; 0 = the whole vector.
  std::size_t chunk = default_outlier_chunk(4);
  double k = 3;  ///< outliers lie beyond k σ; finite and positive
};

/// Throws Error for options outside their range. Vectors have at most 2^32 − 1 elements.
std::unique_ptr<Compressor> make_outlier(const OutlierOptions& options,
                                         const Ops& ops = host_ops());

}  // namespace sotto
