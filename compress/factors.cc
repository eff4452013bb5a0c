#include <sotto/compress/factors.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <type_traits>

namespace sotto {
namespace {

/// A matrix as it lies in memory: whole rows, and what there is of one more.
struct Rows {
  Rows(const MatrixShape& shape, std::size_t elements)
      : columns(shape.columns),
        whole(columns == 0 ? 0 : std::min(shape.rows, elements / columns)),
        rest(whole == shape.rows ? 0 : elements - whole * columns) {}

  std::size_t columns;
  std::size_t whole;
  std::size_t rest;
};

/// Rows that are worked on at a time: their sums do not wait for each other, and what they share is
/// read once.
constexpr std::size_t kTogether = 4;

/// out, row after row, ← Σ_j m_ij f_j, j ascending, for kCount rows of `columns` elements of which
/// each begins `stride` after the last. kRank is the rank, or 0 for any.
template <std::size_t kRank, std::size_t kCount>
void sum_along_rows(const float* m, std::size_t stride, std::size_t columns, std::size_t any_rank,
                    const float* f, double* out) {
  const std::size_t rank = kRank == 0 ? any_rank : kRank;
  if constexpr (kRank == 0) {
    for (std::size_t row = 0; row < kCount; ++row) {
      for (std::size_t j = 0; j < columns; ++j) {
        const auto value = static_cast<double>(m[row * stride + j]);
        for (std::size_t l = 0; l < rank; ++l) {
          out[row * rank + l] += value * static_cast<double>(f[j * rank + l]);
        }
      }
    }
  } else {
    std::array<std::array<double, kRank>, kCount> sums{};
    for (std::size_t j = 0; j < columns; ++j) {
      for (std::size_t row = 0; row < kCount; ++row) {
        const auto value = static_cast<double>(m[row * stride + j]);
        for (std::size_t l = 0; l < kRank; ++l) {
          sums[row][l] += value * static_cast<double>(f[j * kRank + l]);
        }
      }
    }
    for (std::size_t row = 0; row < kCount; ++row) {
      std::copy(sums[row].begin(), sums[row].end(), out + row * kRank);
    }
  }
}

/// out_j ← out_j + Σ_i m_ij f_i, i ascending, for kCount rows i.
template <std::size_t kRank, std::size_t kCount>
void sum_along_columns(const float* m, std::size_t stride, std::size_t columns,
                       std::size_t any_rank, const float* f, double* out) {
  const std::size_t rank = kRank == 0 ? any_rank : kRank;
  for (std::size_t j = 0; j < columns; ++j) {
    for (std::size_t l = 0; l < rank; ++l) {
      double sum = out[j * rank + l];
      for (std::size_t row = 0; row < kCount; ++row) {
        sum += static_cast<double>(m[row * stride + j]) * static_cast<double>(f[row * rank + l]);
      }
      out[j * rank + l] = sum;
    }
  }
}

/// y_j ← y_j + scale × Σ_l a_l b_jl, for one row.
template <std::size_t kRank>
void add_row(std::size_t any_rank, float scale, const float* a, const float* b,
             std::span<float> y) {
  const std::size_t rank = kRank == 0 ? any_rank : kRank;
  for (std::size_t j = 0; j < y.size(); ++j) {
    double sum = 0;
    for (std::size_t l = 0; l < rank; ++l) {
      sum += static_cast<double>(a[l]) * static_cast<double>(b[j * rank + l]);
    }
    y[j] = y[j] + scale * static_cast<float>(sum);
  }
}

/// Calls work(constant) with the rank as a constant where it is a usual one, else with 0.
template <typename Work>
void for_rank(std::size_t rank, const Work& work) {
  switch (rank) {
    case 1:
      return work(std::integral_constant<std::size_t, 1>());
    case 2:
      return work(std::integral_constant<std::size_t, 2>());
    case 4:
      return work(std::integral_constant<std::size_t, 4>());
    default:
      return work(std::integral_constant<std::size_t, 0>());
  }
}

/// out_i ← Σ_j m_ij f_j.
void times_along_rows(const Rows& rows, const float* m, std::size_t rank, const float* f,
                      std::span<double> out) {
  std::ranges::fill(out, 0);
  for_rank(rank, [&]<std::size_t kRank>(std::integral_constant<std::size_t, kRank>) {
    std::size_t row = 0;
    for (; row + kTogether <= rows.whole; row += kTogether) {
      sum_along_rows<kRank, kTogether>(m + row * rows.columns, rows.columns, rows.columns, rank, f,
                                       &out[row * rank]);
    }
    for (; row < rows.whole; ++row) {
      sum_along_rows<kRank, 1>(m + row * rows.columns, rows.columns, rows.columns, rank, f,
                               &out[row * rank]);
    }
    if (rows.rest > 0) {
      sum_along_rows<kRank, 1>(m + row * rows.columns, rows.columns, rows.rest, rank, f,
                               &out[row * rank]);
    }
  });
}

/// out_j ← Σ_i m_ij f_i.
void times_along_columns(const Rows& rows, const float* m, std::size_t rank, const float* f,
                         std::span<double> out) {
  std::ranges::fill(out, 0);
  for_rank(rank, [&]<std::size_t kRank>(std::integral_constant<std::size_t, kRank>) {
    std::size_t row = 0;
    for (; row + kTogether <= rows.whole; row += kTogether) {
      sum_along_columns<kRank, kTogether>(m + row * rows.columns, rows.columns, rows.columns, rank,
                                          f + row * rank, out.data());
    }
    for (; row < rows.whole; ++row) {
      sum_along_columns<kRank, 1>(m + row * rows.columns, rows.columns, rows.columns, rank,
                                  f + row * rank, out.data());
    }
    if (rows.rest > 0) {
      sum_along_columns<kRank, 1>(m + row * rows.columns, rows.columns, rows.rest, rank,
                                  f + row * rank, out.data());
    }
  });
}

double column_dot(std::size_t rank, std::span<const double> p, std::size_t a, std::size_t b) {
  double sum = 0;
  for (std::size_t i = 0; i < p.size(); i += rank) {
    sum += p[i + a] * p[i + b];
  }
  return sum;
}

}  // namespace

FactorPiece folded_piece(std::size_t elements, std::size_t rank, std::size_t factors) {
  auto rows = static_cast<std::size_t>(std::sqrt(static_cast<double>(elements)));
  rows += rows * rows < elements ? 1 : 0;
  const std::size_t columns = rows == 0 ? 0 : (elements + rows - 1) / rows;
  return {0, elements, worth_factoring({rows, columns}, rank, factors)};
}

std::vector<FactorPiece> factor_pieces(const ParameterLayout& layout, std::size_t rank,
                                       std::size_t factors) {
  if (layout.size() == 1 && layout.front().shape.size() == 1) {
    return {folded_piece(layout.front().size, rank, factors)};
  }
  std::vector<FactorPiece> pieces;
  for (const ParameterBlock& tensor : layout) {
    pieces.push_back(factor_piece(tensor, rank, factors));
  }
  return pieces;
}

void fill_zero_columns(std::size_t rank, std::span<float> start, RandomStream& random) {
  for (std::size_t column = 0; column < rank; ++column) {
    bool zero = true;
    for (std::size_t i = column; i < start.size(); i += rank) {
      zero = zero && start[i] == 0;
    }
    for (std::size_t i = column; zero && i < start.size(); i += rank) {
      start[i] = static_cast<float>(2 * random.uniform() - 1);
    }
  }
}

void times(const MatrixShape& shape, std::span<const float> m, std::size_t rank,
           std::span<const float> s, std::span<double> out) {
  const Rows rows(shape, m.size());
  shape.turned() ? times_along_columns(rows, m.data(), rank, s.data(), out)
                 : times_along_rows(rows, m.data(), rank, s.data(), out);
}

void transposed_times(const MatrixShape& shape, std::span<const float> m, std::size_t rank,
                      std::span<const float> p, std::span<double> out) {
  const Rows rows(shape, m.size());
  shape.turned() ? times_along_rows(rows, m.data(), rank, p.data(), out)
                 : times_along_columns(rows, m.data(), rank, p.data(), out);
}

void orthonormalize(std::size_t rank, std::span<double> p) {
  // What is left of a column that lies in the span of earlier ones is rounding.
  constexpr double kDependent = 1e-7;
  for (std::size_t column = 0; column < rank; ++column) {
    const double before = std::sqrt(column_dot(rank, p, column, column));
    // Gram–Schmidt twice is enough (W. Kahan, in B. Parlett 1980).
    for (int pass = 0; pass < 2; ++pass) {
      for (std::size_t earlier = 0; earlier < column; ++earlier) {
        const double along = column_dot(rank, p, earlier, column);
        for (std::size_t i = 0; i < p.size(); i += rank) {
          p[i + column] -= along * p[i + earlier];
        }
      }
    }
    const double left = std::sqrt(column_dot(rank, p, column, column));
    const bool independent = left > kDependent * before;
    for (std::size_t i = 0; i < p.size(); i += rank) {
      p[i + column] = independent ? p[i + column] / left : 0;
    }
  }
}

void add_product(const MatrixShape& shape, std::size_t rank, float scale, std::span<const float> p,
                 std::span<const float> q, std::span<float> y) {
  const Rows rows(shape, y.size());
  const auto of_rows = shape.turned() ? q : p;
  const auto of_columns = shape.turned() ? p : q;
  for_rank(rank, [&]<std::size_t kRank>(std::integral_constant<std::size_t, kRank>) {
    for (std::size_t row = 0, first = 0; first < y.size(); ++row, first += rows.columns) {
      add_row<kRank>(rank, scale, &of_rows[row * rank], of_columns.data(),
                     y.subspan(first, std::min(rows.columns, y.size() - first)));
    }
  });
}

}  // namespace sotto
