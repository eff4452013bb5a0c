// `grid:B:STEP`: a fixed uniform grid of 2^B values about zero, stochastically rounded.
//
// Payload: B (1 byte), STEP (float32), then the packed codes (kernels/ops.h); code q stands for
// (q − 2^(B−1)) × STEP, so the range is −2^(B−1) STEP … (2^(B−1) − 1) STEP. B and STEP travel so
// that two nodes set differently notice.
//
// Within the range: unbiased, and the variance of an element is at most STEP²/4 whatever its size,
// so E‖C(x) − x‖² ≤ d STEP²/4: the absolute bound that ECD-PSGD asks for (Tang et al. 2018,
// arXiv:1803.06443, assumption of Algorithm 2). Elements outside saturate, the bound is lost for
// them, and they are counted (`saturated`): choose B and STEP so that there are none. The mean is
// exact to 2^-16 of a step, the resolution of the rounding noise.
//
// Thread safety and ownership: see Compressor. Allocates nothing.
#pragma once

#include <memory>
#include <optional>

#include <sotto/compress/compressor.h>

namespace sotto {

inline constexpr std::uint16_t kGridWireId = 5;  ///< the compressor's number in frames

/// The settings of `grid`.
struct GridOptions {
  int bits = 8;        ///< 1 … 8
  float step = 0.01F;  ///< at least 2^-126, and 2^B steps must be finite
};

/// The options of a compressor that make_grid has made; nothing for any other.
std::optional<GridOptions> grid_options(const Compressor& compressor);

/// Throws Error for options outside their range.
std::unique_ptr<Compressor> make_grid(const GridOptions& options, const Ops& ops = host_ops());

}  // namespace sotto
