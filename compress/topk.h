// `topk:KEEP`: the ⌈KEEP × d⌉ elements of largest magnitude, exact; the others are taken as zero.
//
// Payload: k (4 bytes), Rice parameter p (1 byte), the k values (float32) by ascending index, then
// the indices as gaps, Golomb–Rice coded: gap = index − previous index − 1 (the first gap is the
// first index) stands as gap >> p ones, a zero and the p low bits; bits fill bytes from the lowest;
// the rest of the last byte is zero. Indices are thus ascending and distinct by construction.
// The gaps sum to at most d − k, so they take at most k (p + 1) + ⌊(d − k) / 2^p⌋ bits, whatever
// the data; p minimizes this. Evenly spread indices then cost within 0.2 bit of their entropy each
// (KEEP ≤ ½).
//
// Contraction with δ = k/d (Stich et al. 2018, arXiv:1809.07599). Ties go to the lowest index.
// Thread safety and ownership: see Compressor. encode keeps k (index, value) pairs and has
// room for 8 k (d at most) that may be among them, allocated when k first grows: 18 k words.
#pragma once

#include <memory>

#include <sotto/compress/compressor.h>

namespace sotto {

inline constexpr std::uint16_t kTopkWireId = 7;  ///< the compressor's number in frames

/// Throws Error unless 0 < keep_ratio ≤ 1. Vectors have at most 2^32 − 1 elements.
std::unique_ptr<Compressor> make_topk(double keep_ratio, const Ops& ops = host_ops());

}  // namespace sotto
