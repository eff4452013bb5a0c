// `quant:B`: a uniform grid of 2^B values per chunk, fitted to the chunk's range.
//
// Payload: B (1 byte), chunk length (4 bytes, 0 = the whole vector), then origin and step (float32
// each) of every chunk, then the packed codes (kernels/ops.h) of every chunk; code q stands for
// origin + q × step. All scales come first, so that a decoder can judge them before it decodes, and
// so that the codes of chunks of a multiple of 64 are those of the whole vector.
//
// With N = 2^B − 1, n the chunk's length, R its range and M its largest magnitude:
//
// Stochastic (unbiased; Alistarh et al. 2017, arXiv:1610.02132, with min–max scaling): origin =
// min, step = R / N. An element between two grid points has variance at most step²/4, and R² ≤ 2
// (min² + max²) ≤ 2‖x‖², so E‖C(x) − x‖² ≤ n step²/4 ≤ n / (2 N²) ‖x‖²: α² = n / (2 N²). The mean
// is exact to 2^-16 of a step, the resolution of the rounding noise.
//
// Nearest (contraction): origin = −z × step with an integer z, step = R₀ / N, where R₀ ≤ 2M is the
// range of the chunk and zero. Zero is on the grid and no grid point lies between an element and
// its code's value, so |C(x)_k − x_k| ≤ min(|x_k|, step/2), and step/2 ≤ M/N. The error relative to
// ‖x‖² is largest when every other element is M/N in magnitude: 1 − δ = n / (N² + n − 1), so
// δ = (N² − 1) / (N² + n − 1); no contraction for B = 1.
//
// A constant chunk is exact in the stochastic form, and so are zeros in the nearest form. Steps are
// at least 2^-126 (`floor_per_element`); a range wider than float32's largest value is cut down
// (`saturated`).
// Thread safety and ownership: see Compressor. Allocates nothing.
#pragma once

#include <bit>
#include <cstddef>
#include <memory>

#include <sotto/compress/compressor.h>

namespace sotto {

inline constexpr std::uint16_t kQuantWireId = 4;  ///< the compressor's number in frames

/// The shortest power of two for which two float32 a chunk cost at most half of 1 % of the codes.
constexpr std::size_t default_quant_chunk(int bits) {
  return std::bit_ceil((std::size_t{12800} + static_cast<std::size_t>(bits) - 1) /
                       static_cast<std::size_t>(bits));
}

/// The settings of `quant`.
struct QuantOptions {
  int bits = 8;  ///< 1 … 8
  /// Elements that share a scale, up to 2^32 − 1; 0 = the whole vector. Shorter chunks follow the
  /// data more closely and cost 8 bytes each; lengths that are no multiple of 64 decode slower.
  std::size_t chunk = default_quant_chunk(8);
  Rounding rounding = Rounding::stochastic;
};

/// Throws Error for options outside their range.
std::unique_ptr<Compressor> make_quant(const QuantOptions& options, const Ops& ops = host_ops());

}  // namespace sotto
