#include <sotto/compress/factors.h>

#include <algorithm>
#include <cmath>

namespace sotto {
namespace {

/// Calls visit(i, j, e) for every element e that is there, at row i and column j of the tall form.
template <typename Visit>
void for_each_element(const MatrixShape& shape, std::size_t elements, Visit&& visit) {
  std::size_t e = 0;
  for (std::size_t row = 0; row < shape.rows && e < elements; ++row) {
    for (std::size_t column = 0; column < shape.columns && e < elements; ++column, ++e) {
      shape.turned() ? visit(column, row, e) : visit(row, column, e);
    }
  }
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
  std::ranges::fill(out, 0);
  for_each_element(shape, m.size(), [&](std::size_t i, std::size_t j, std::size_t e) {
    const auto value = static_cast<double>(m[e]);
    for (std::size_t l = 0; l < rank; ++l) {
      out[i * rank + l] += value * static_cast<double>(s[j * rank + l]);
    }
  });
}

void transposed_times(const MatrixShape& shape, std::span<const float> m, std::size_t rank,
                      std::span<const float> p, std::span<double> out) {
  std::ranges::fill(out, 0);
  for_each_element(shape, m.size(), [&](std::size_t i, std::size_t j, std::size_t e) {
    const auto value = static_cast<double>(m[e]);
    for (std::size_t l = 0; l < rank; ++l) {
      out[j * rank + l] += value * static_cast<double>(p[i * rank + l]);
    }
  });
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
  for_each_element(shape, y.size(), [&](std::size_t i, std::size_t j, std::size_t e) {
    double sum = 0;
    for (std::size_t l = 0; l < rank; ++l) {
      sum += static_cast<double>(p[i * rank + l]) * static_cast<double>(q[j * rank + l]);
    }
    y[e] = y[e] + scale * static_cast<float>(sum);
  });
}

}  // namespace sotto
