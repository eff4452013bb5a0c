// `fp16` and `bf16`: half precision, rounded to nearest even, beyond the range saturated and
// counted.
//
// Payload: the elements as little-endian 16-bit patterns of IEEE 754 binary16 or of bfloat16.
// Contractions that are almost exact. Within the range of normal numbers an element's error is at
// most 2^-11 (fp16) or 2^-8 (bf16) of its magnitude, so δ = 1 − 2^-22 or 1 − 2^-16; smaller
// elements lose what the format cannot tell apart, `floor_per_element` at most.
// - fp16: normal from 2^-14 to 65504. Below, the error is at most 2^-25 (`floor_per_element`):
//   gradients of magnitude 1e-8 vanish. From 65520 on, elements saturate.
// - bf16: normal over float32's own range, down to 2^-126. Below, the error is at most 2^-134
//   (`floor_per_element`), which may be all of an element.
//   Elements saturate only within 2^-9 of float32's largest value.
// Thread safety and ownership: see Compressor. Allocates nothing.
#pragma once

#include <memory>

#include <sotto/compress/compressor.h>

namespace sotto {

inline constexpr std::uint16_t kFp16WireId = 2;  ///< the compressor's number in frames
inline constexpr std::uint16_t kBf16WireId = 3;  ///< the compressor's number in frames

/// IEEE half precision: 11 bits of mantissa, values up to 65504.
std::unique_ptr<Compressor> make_fp16(const Ops& ops = host_ops());
/// bfloat16: 8 bits of mantissa, the range of float32.
std::unique_ptr<Compressor> make_bf16(const Ops& ops = host_ops());

}  // namespace sotto
