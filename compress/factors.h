// Matrices as products of two factors: one step of subspace iteration, for `lowrank` (low_rank.h),
// PowerSGD and PowerGossip (optim/algorithms/power_sgd.h, power_gossip.h). Plain loops in double
// precision, in the order of the elements, so that results are the same everywhere.
//
// Pure functions on views; thread-safe.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include <sotto/base/parameter_layout.h>
#include <sotto/base/philox.h>

namespace sotto {

/// A matrix of `rows` × `columns` in row-major order, the last elements of which may be missing and
/// count as zero. Its tall form, transposed where there are more columns, has `longer` rows.
struct MatrixShape {
  std::size_t rows = 0;
  std::size_t columns = 0;

  std::size_t longer() const { return rows > columns ? rows : columns; }
  std::size_t shorter() const { return rows > columns ? columns : rows; }
  bool turned() const { return rows < columns; }
};

/// A run of elements: a matrix that is worth two factors, or elements to be taken as they are.
struct FactorPiece {
  std::size_t offset = 0;
  std::size_t size = 0;
  std::optional<MatrixShape> matrix;
};

/// The factors of a product, one on each side of the matrix.
constexpr std::size_t kBothFactors = 2;

/// A matrix that `factors` of its factors of `rank` columns, as many of one side as of the other on
/// average, are smaller than; or nothing. A single factor is never larger than the matrix.
inline std::optional<MatrixShape> worth_factoring(const MatrixShape& shape, std::size_t rank,
                                                  std::size_t factors = kBothFactors) {
  const bool smaller = rank <= shape.shorter() && factors * rank * (shape.rows + shape.columns) <
                                                      kBothFactors * shape.rows * shape.columns;
  return smaller ? std::optional(shape) : std::nullopt;
}

/// The matrix of a tensor, cut after its first dimension, where it is worth factoring.
inline FactorPiece factor_piece(const ParameterBlock& tensor, std::size_t rank,
                                std::size_t factors = kBothFactors) {
  FactorPiece piece{tensor.offset, tensor.size, std::nullopt};
  if (tensor.shape.size() > 1 && tensor.size > 0) {
    piece.matrix = worth_factoring({tensor.shape[0], tensor.size / tensor.shape[0]}, rank, factors);
  }
  return piece;
}

/// `elements` folded row by row into a nearly square matrix.
FactorPiece folded_piece(std::size_t elements, std::size_t rank,
                         std::size_t factors = kBothFactors);

/// All tensors of a layout; a single tensor of one dimension, which has no better matrix than a
/// square one, is folded.
std::vector<FactorPiece> factor_pieces(const ParameterLayout& layout, std::size_t rank,
                                       std::size_t factors = kBothFactors);

/// Draws the columns of a start, rows of `rank`, that are zero: uniform in (−1, 1).
void fill_zero_columns(std::size_t rank, std::span<float> start, RandomStream& random);

/// out ← M s, with M turned to be tall: `s` is shorter × rank, `out` longer × rank.
void times(const MatrixShape& shape, std::span<const float> m, std::size_t rank,
           std::span<const float> s, std::span<double> out);

/// out ← Mᵀ p, likewise: `p` is longer × rank, `out` shorter × rank.
void transposed_times(const MatrixShape& shape, std::span<const float> m, std::size_t rank,
                      std::span<const float> p, std::span<double> out);

/// Makes the `rank` columns of p orthonormal; those that depend on earlier ones become zero.
void orthonormalize(std::size_t rank, std::span<double> p);

/// y ← y + scale × p qᵀ, each entry of the product rounded once.
void add_product(const MatrixShape& shape, std::size_t rank, float scale, std::span<const float> p,
                 std::span<const float> q, std::span<float> y);

}  // namespace sotto
