// One step of subspace iteration on a matrix (low_rank.h). Plain loops in double precision, in the
// order of the elements, so that results are the same everywhere.
//
// Pure functions on views; thread-safe.
#pragma once

#include <cstddef>
#include <span>

namespace sotto::internal {

/// A matrix of `rows` × `columns` in row-major order, the last elements of which may be missing and
/// count as zero. Its tall form, transposed where there are more columns, has `longer` rows.
struct MatrixShape {
  std::size_t rows = 0;
  std::size_t columns = 0;

  std::size_t longer() const { return rows > columns ? rows : columns; }
  std::size_t shorter() const { return rows > columns ? columns : rows; }
  bool turned() const { return rows < columns; }
};

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

}  // namespace sotto::internal
