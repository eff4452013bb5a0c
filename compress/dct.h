// `dct/SPEC`: SPEC, of the coefficients of cosine transforms in blocks.
//
// What training sends is smooth in places and wild in others; in the basis of cosines fewer
// coefficients stand for as much of it, which serves compressors that keep few elements, or few
// bits of them. After DeMo (Peng et al. 2024, arXiv:2411.19870), whose message is the largest
// coefficients of a momentum: `dct/topk:0.03,values=1,chunk=4096`.
//
// Blocks. Of a tensor of two dimensions or more, cut after its first one into a matrix, 64 × 64
// elements, transformed along both sides; of other tensors 64 elements in a row. A last, shorter
// block has the length that is left, and a transform of that length. (DeMo's own code takes the
// largest divisor of a dimension up to 64: of a prime one blocks of single elements, of which all
// are kept.) A vector of another length than the layout's, a chunk of a model, say, and every
// vector when there is no layout, is cut as one tensor of one dimension.
//
// Payload: SPEC's number in frames (2 bytes), then SPEC's encoding of all coefficients, block by
// block, and in each row by row, lowest frequencies first. Runs of 4096 of `topk` and `sign` are
// the blocks of 64 × 64, where tensors have no others.
//
// Contract: SPEC's. The transform is orthonormal (kernels/dct.h), so that squares and errors are
// those of the coefficients; and the mean is kept where SPEC keeps it. Up to rounding, which is
// below 2^-19 ‖x‖: of an exact SPEC that is all there is, and C is a contraction with δ = 1 −
// 2^-38. Elements of about 2^-149 are rounded by as much in each of the passes
// (`floor_per_element`), and coefficients beyond float32's largest value are cut down
// (`saturated`).
//
// Thread safety and ownership: see Compressor. encode and decode_add keep the coefficients, a float
// an element, allocated when they first grow; the factors of transforms belong to the process, and
// are allocated with the first of them.
#pragma once

#include <cstdint>
#include <memory>

#include <sotto/base/parameter_layout.h>
#include <sotto/compress/compressor.h>

namespace sotto {

inline constexpr std::uint16_t kDctWireId = 14;  ///< the compressor's number in frames

/// `inner` of the coefficients of vectors that `layout` describes; an empty one says nothing of
/// them.
std::unique_ptr<Compressor> make_dct(std::unique_ptr<Compressor> inner,
                                     const ParameterLayout& layout);

}  // namespace sotto
