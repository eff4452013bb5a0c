// `randk:KEEP,values=B` and `randk:KEEP/topk:KEEP,values=B,chunk=N`: of r = ⌈KEEP × d⌉ elements
// chosen at random all, or the largest, with values of B bits; the others are taken as zero.
//
// The second is CocktailSGD's composition (Wang et al., ICML 2023, PMLR 202:36058), random ∘ top-k
// ∘ few bits: only r elements are searched, and the random choice costs no indices.
//
// Payload: r (4 bytes), selection key (8 bytes), as in randk.h, then the encoding (coded_topk.h) of
// the r chosen elements in the order of the selection. All that are chosen are kept by
// `topk:1,values=B,chunk=0`, whose indices take no bytes.
//
// Contraction in expectation, with δ = r/d × that of the encoding: E‖C(x) − x‖² = ‖x‖² −
// E(‖p‖² − ‖C(p) − p‖²) for the chosen p, E‖p‖² = r/d ‖x‖². There is no unbiased form.
// Thread safety and ownership: see Compressor. Keeps r floats and what randk.h keeps,
// allocated when r first grows.
#pragma once

#include <memory>

#include <sotto/compress/coded_topk.h>

namespace sotto {

inline constexpr std::uint16_t kCodedRandkWireId = 13;  ///< the compressor's number in frames

/// The settings of `randk` with values of few bits.
struct CodedRandkOptions {
  double keep_ratio = 0.1;  ///< in (0, 1]
  /// How the chosen elements are encoded.
  CodedTopkOptions within{.keep_ratio = 1, .value_bits = 4, .chunk = 0};
};

/// Throws Error for options outside their range. Vectors have at most 2^32 − 1 elements.
std::unique_ptr<Compressor> make_coded_randk(const CodedRandkOptions& options,
                                             const Ops& ops = host_ops());

}  // namespace sotto
