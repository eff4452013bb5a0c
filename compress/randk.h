// `randk:KEEP`: k = ⌈KEEP × d⌉ elements chosen at random; the others are taken as zero.
//
// Payload: k (4 bytes), selection key (8 bytes), then the k values (float32) in the order of the
// selection. The chosen indices are the first k of a permutation of 0 … d − 1 that the selection
// key determines (internal/permutation.h): they cost no bytes, and no memory on either side.
// The selection key is 64 random bits of the encoder's RandomKey under Purpose::select.
//
// scale=unbiased: values are multiplied by d/k. E C(x) = x and E‖C(x) − x‖² = (d/k − 1)‖x‖²
// (Stich et al. 2018, arXiv:1809.07599). Values that this takes beyond float32's range saturate;
// denormal ones, which float32 would round all one way, are rounded up or down at random to keep
// the mean: half of 2^-149 an element (`floor_per_element`).
// scale=none: values as they are, a contraction with δ = k/d in expectation.
// The receiver needs not know which: values travel scaled.
// Thread safety and ownership: see Compressor. Keeps two words a chosen element, allocated when
// their number first grows.
#pragma once

#include <memory>

#include <sotto/compress/compressor.h>

namespace sotto {

inline constexpr std::uint16_t kRandkWireId = 8;  ///< the compressor's number in frames

/// Whether kept elements are scaled by d / k, which makes C unbiased, or stay unscaled.
enum class RandkScale { unbiased, none };

/// The settings of `randk`.
struct RandkOptions {
  double keep_ratio = 0.1;  ///< in (0, 1]
  RandkScale scale = RandkScale::unbiased;
};

/// Throws Error unless 0 < keep_ratio ≤ 1. Vectors have at most 2^32 − 1 elements.
std::unique_ptr<Compressor> make_randk(const RandkOptions& options);

}  // namespace sotto
