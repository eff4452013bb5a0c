// `topk:KEEP,values=B,chunk=N`: of each run of N elements the ⌈KEEP × N⌉ of largest magnitude, with
// values of B bits; the others are taken as zero.
//
// Sparse messages of few bits a value are those of CocktailSGD (Wang et al., ICML 2023, PMLR
// 202:36058) and SparseLoCo (Sarfi et al. 2025, arXiv:2508.15706); fitted levels and coded gaps are
// sotto's own, and take fewer bytes at a smaller error than either. Runs bound the search and let
// every part of a model be heard. Ties go to the lowest index; a last, shorter run keeps
// ⌈KEEP × its length⌉.
//
// Values, K in all, are cut into groups of about 2048 (internal/value_groups.h). A value's code is
// the index of a magnitude, and 2^(B−1) more for a negative sign:
// - B ≤ 4: the 2^(B−1) levels of a group are fitted by the method of Lloyd and Max, each the mean
//   of its cell (internal/level_fit.h); where there are no more distinct magnitudes than levels,
//   all are exact;
// - 5 ≤ B ≤ 8: index j stands for j × step, and 2^(B−1) − 1 steps reach the group's largest;
// - B = 32: values travel as they are.
//
// Payload: B (1 byte), N (4 bytes, 0 = the whole vector), K (4 bytes); B ≤ 8: of each group the
// levels, ascending but for those of empty cells, or the step (float32), then the packed codes
// (kernels/ops.h) of each group; B = 32: K values (float32). Then the indices of each run, which
// count from its first element, Golomb–Rice coded as in topk.h, without anything between the runs.
// p is the one that suits the longest run, and a run that is kept whole has no indices. The last
// byte is filled with zeros. With B = 2 and 32, 64 or 128 kept of 4096 this is 0.082, 0.149 or
// 0.267 bits an element.
//
// Contraction. Of a run of n elements the k kept have at least k/n of its square. Where a level is
// the mean of its cell, v̂ is the orthogonal projection of the kept values v, so that
// ⟨v − v̂, v̂⟩ = 0, and ‖v̂‖² is no smaller than with one level for all, ‖v‖₁² / G for G values.
// Write v as m + w, m the smallest kept magnitude of its run, w ≥ 0: comparing the terms of ‖v‖₁²
// and those of ‖x‖² ≤ ‖v‖² + Σ (n − k) m² shows that δ ≥ min(1, k²/n) / G; the worst case is a
// single spike. A grid keeps 4 N² / (G + 4 N²) of ‖v‖², N = 2^(B−1) − 1 steps, as in outlier.h.
// Typically, of Gaussian data of which 64 in 4096 are kept, the kept values are wrong by 0.0044 of
// their square with B = 2 and by 0.013 with B = 1. Levels and steps of denormals are rounded to
// multiples of 2^-149 (`floor_per_element`).
//
// Thread safety and ownership: see Compressor. encode keeps K indices and values, and decode_add K
// indices, allocated when they first grow.
#pragma once

#include <cstddef>
#include <memory>

#include <sotto/compress/compressor.h>

namespace sotto {

inline constexpr std::uint16_t kCodedTopkWireId = 12;  ///< the compressor's number in frames

/// The settings of `topk` with values of few bits.
struct CodedTopkOptions {
  double keep_ratio = 0.01;  ///< in (0, 1]
  int value_bits = 2;        ///< 1 … 8, or 32
  /// Elements of a run, up to 2^32 − 1; 0 = the whole vector.
  std::size_t chunk = 4096;
};

/// Throws Error for options outside their range. Vectors have at most 2^32 − 1 elements.
std::unique_ptr<Compressor> make_coded_topk(const CodedTopkOptions& options,
                                            const Ops& ops = host_ops());

}  // namespace sotto
