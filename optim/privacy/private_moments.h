// Count, sums and sums of squares of a table's columns, which may leave with noise.
//
// A row of d columns, each value u in −1 … 1, adds (1, u_1, u_1², …, u_d, u_d²) to 1 + 2 d sums.
// A row that is there or not therefore moves all of them together by at most
//   Δ = √(1 + Σ_k (u_k² + u_k⁴)) ≤ √(1 + 2 d)
// in the Euclidean norm. Released is each sum + σ Δ N(0, 1): one step of the Gaussian mechanism
// with noise multiplier σ on all data, GaussianStep{σ, 1}, which PrivacyAccountant adds to others.
//
// Floating-point numbers. Their low bits can betray the value under the noise (Mironov 2012). Each
// row's values are rounded to a grid of 2^-30 before they are added, and sums are whole numbers of
// that grid, so that Δ bounds what is added exactly; noise is rounded to the same grid.
// Timing is not covered.
//
// Thread safety: one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <sotto/base/secret_stream.h>

namespace sotto {

/// The figures that leave of a table, in units in which values lie in −1 … 1.
struct ReleasedMoments {
  double rows = 0;
  std::vector<double> sums;     ///< sum of each column
  std::vector<double> squares;  ///< sum of squares of each column
};

class PrivateMoments {
 public:
  /// Sums of no rows yet, for rows of `columns` columns.
  explicit PrivateMoments(std::size_t columns);

  /// Adds a row. Requires a value in −1 … 1 for each column, and fewer than 2^32 rows.
  void add(std::span<const double> row);
  /// Δ = √(1 + 2 columns)
  double sensitivity() const;
  /// The sums with noise of deviation σ Δ, from a key that is used for nothing else; exact for
  /// σ = 0. Each call tells more of the data. Requires σ of 0 … 10^6 and at most 2^17 columns.
  ReleasedMoments release(double noise_multiplier, const SecretKey& key) const;

 private:
  std::int64_t rows_ = 0;
  std::vector<std::int64_t> sums_;  // sums of columns and squares in turn, in grid steps
};

}  // namespace sotto
