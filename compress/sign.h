// `sign`: one bit an element and one scale a chunk.
//
// Payload: chunk length (4 bytes, 0 = the whole vector), then the scale (float32) of every chunk,
// then the sign bits (1 for x ≥ 0) of every chunk. C(x) = scale × sign(x), sign(0) = +1.
//
// scale=mean (default): ‖x‖₁/n, the least-squares choice. ‖C(x) − x‖² = ‖x‖² − ‖x‖₁²/n, and
// ‖x‖₁ ≥ ‖x‖₂, so it is a contraction with δ ≥ 1/n for a chunk of n (Bernstein et al. 2018,
// arXiv:1802.04434; Karimireddy et al. 2019, arXiv:1901.09847). On Gaussian data the error is
// √(1 − 2/π) = 0.603.
// scale=l2: ‖x‖₂/√n, as some implementations have it. ‖C(x) − x‖² = 2‖x‖² (1 − ‖x‖₁/(√n ‖x‖₂)) can
// exceed ‖x‖² on spiky vectors: it promises no contraction, only α² < 2.
// The scale of denormals is rounded to a multiple of 2^-149 (`floor_per_element`).
// Thread safety and ownership: see Compressor. Allocates nothing.
#pragma once

#include <cstddef>
#include <memory>

#include <sotto/compress/compressor.h>

namespace sotto {

inline constexpr std::uint16_t kSignWireId = 6;  ///< the compressor's number in frames

/// The scale of a chunk: the mean magnitude, or the root of the mean square.
enum class SignScale { mean, l2 };

/// The settings of `sign`.
struct SignOptions {
  /// Elements that share a scale, up to 2^32 − 1; 0 = the whole vector. By default the scales cost
  /// under 1 % of the bits.
  std::size_t chunk = 4096;
  SignScale scale = SignScale::mean;
};

/// Throws Error for a chunk outside its range.
std::unique_ptr<Compressor> make_sign(const SignOptions& options, const Ops& ops = host_ops());

}  // namespace sotto
