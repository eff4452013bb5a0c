// `lowrank:K`: every matrix as the product of two factors of rank K.
//
// PowerSGD's compressor (Vogels, Karimireddy and Jaggi, NeurIPS 2019, arXiv:1905.13727): one step
// of subspace iteration. With M turned so that it has no more columns than rows, and a start S with
// K columns:
//   P = orthonormalized M S;   Q = Mᵀ P;   C(M) = P Qᵀ, the projection of M on the range of M S.
// steps=N makes N such steps, each from the Q of the one before.
// start=warm (default): S is the last Q of the same stream (RandomKey::bucket) on the encoder's
// side alone; over rounds that is a power iteration. A new S is drawn where there is none, for
// columns that are zero, and where C would keep less of M than a drawn S does on average.
// start=random: S is drawn each time, uniform in (−1, 1), from the rounding key.
//
// Matrices are the layout's tensors of two or more dimensions, cut after the first dimension as in
// the paper. Vectors, scalars, and matrices whose factors would be no smaller, travel exactly. A
// vector of another length than the layout's, and every vector without a layout, is folded row by
// row into a nearly square matrix, filled up with zeros.
//
// Payload: K (2 bytes), then for each tensor P (float32, row by row) and Q, or its elements. The
// decoder needs nothing that the encoder remembers.
//
// Contraction. C is an orthogonal projection of M, so it never expands; for a drawn S, independent
// of M, the error is at most that of projecting the n columns of M on the span of S, which keeps
// K/n of ‖M‖² on average, by symmetry. The rule above extends this to warm starts: δ = K /
// min(rows, columns), of the worst matrix. Warm starts keep far more of matrices that change
// slowly. Entries of Q beyond float32's largest value / 4K are cut down (`saturated`);
// those of denormals are rounded to multiples of 2^-149 (`floor_per_element` covers both factors).
//
// Products are summed in double precision in the order of the elements: the same bytes everywhere.
// Thread safety and ownership: see Compressor. encode and decode_add allocate when a stream or a
// length first comes up; a stream keeps K floats a column of each matrix, which save writes.
#pragma once

#include <memory>
#include <optional>

#include <sotto/base/parameter_layout.h>
#include <sotto/compress/compressor.h>

namespace sotto {

inline constexpr std::uint16_t kLowRankWireId = 9;  ///< the compressor's number in frames
inline constexpr int kMostLowRank = 1024;           ///< the largest K
inline constexpr int kMostLowRankSteps = 64;        ///< the most steps of the power iteration

/// The settings of `lowrank`.
struct LowRankOptions {
  int rank = 2;  ///< K, 1 … kMostLowRank
  bool warm_start = true;
  int steps = 1;  ///< steps of the iteration in an encoding; 1 … kMostLowRankSteps
};

/// Throws Error for a rank or a number of steps outside its range.
std::unique_ptr<Compressor> make_low_rank(const LowRankOptions& options,
                                          const ParameterLayout& layout = {});

/// The options of a compressor that make_low_rank has made; nothing for any other.
std::optional<LowRankOptions> low_rank_options(const Compressor& compressor);

}  // namespace sotto
