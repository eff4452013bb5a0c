#include "matrix_product.h"

#include <algorithm>

#include <sotto/base/check.h>

#include "host/packed_product.h"

namespace sotto {
namespace {

void require_sizes(const ProductShape& shape, std::size_t a, std::size_t b, std::size_t out) {
  check(a == shape.rows * shape.inner && b == shape.inner * shape.columns &&
            out == shape.rows * shape.columns,
        "matrices have the sizes of their product");
}

/// Rows and columns of a tile: what is read and what is written both stay in the cache.
constexpr std::size_t kTile = 16;

/// Copies what is above the diagonal to below it.
void mirror(std::size_t rows, std::span<float> out) {
  for (std::size_t i0 = 0; i0 < rows; i0 += kTile) {
    for (std::size_t j0 = 0; j0 <= i0; j0 += kTile) {
      for (std::size_t i = i0; i < std::min(rows, i0 + kTile); ++i) {
        for (std::size_t j = j0; j < std::min(i, j0 + kTile); ++j) {
          out[i * rows + j] = out[j * rows + i];
        }
      }
    }
  }
}

}  // namespace

MatrixProduct::MatrixProduct() : packed_(kPackedDepth * kPackedWidth) {}

void MatrixProduct::times(const ProductShape& shape, std::span<const float> a,
                          std::span<const float> b, std::span<float> out) {
  require_sizes(shape, a.size(), b.size(), out.size());
  compute(
      {.shape = shape, .a = a.data(), .b = b.data(), .out = out.data(), .packed = packed_.data()});
}

void MatrixProduct::times_transposed(const ProductShape& shape, std::span<const float> a,
                                     std::span<const float> b, std::span<float> out) {
  require_sizes(shape, a.size(), b.size(), out.size());
  compute({.shape = shape,
           .a = a.data(),
           .b = b.data(),
           .transposed = true,
           .out = out.data(),
           .packed = packed_.data()});
}

void MatrixProduct::gram(std::size_t rows, std::size_t columns, std::span<const float> x,
                         std::span<float> out) {
  const ProductShape shape = {rows, columns, rows};
  require_sizes(shape, x.size(), x.size(), out.size());
  compute({.shape = shape,
           .a = x.data(),
           .b = x.data(),
           .transposed = true,
           .upper = true,
           .out = out.data(),
           .packed = packed_.data()});
  mirror(rows, out);
}

void MatrixProduct::square(std::size_t rows, std::span<const float> a, std::span<float> out) {
  const ProductShape shape = {rows, rows, rows};
  require_sizes(shape, a.size(), a.size(), out.size());
  compute({.shape = shape,
           .a = a.data(),
           .b = a.data(),
           .upper = true,
           .out = out.data(),
           .packed = packed_.data()});
  mirror(rows, out);
}

void transpose(std::size_t rows, std::size_t columns, std::span<const float> x,
               std::span<float> out) {
  check(x.size() == rows * columns && out.size() == x.size(), "a matrix and its transpose");
  for (std::size_t i0 = 0; i0 < rows; i0 += kTile) {
    for (std::size_t j0 = 0; j0 < columns; j0 += kTile) {
      for (std::size_t i = i0; i < std::min(rows, i0 + kTile); ++i) {
        for (std::size_t j = j0; j < std::min(columns, j0 + kTile); ++j) {
          out[j * rows + i] = x[i * columns + j];
        }
      }
    }
  }
}

void plain_product(const ProductShape& shape, std::span<const float> a, std::span<const float> b,
                   std::span<float> out) {
  require_sizes(shape, a.size(), b.size(), out.size());
  for (std::size_t i = 0; i < shape.rows; ++i) {
    for (std::size_t j = 0; j < shape.columns; ++j) {
      float sum = 0;
      for (std::size_t k = 0; k < shape.inner; ++k) {
        sum += a[i * shape.inner + k] * b[k * shape.columns + j];
      }
      out[i * shape.columns + j] = sum;
    }
  }
}

}  // namespace sotto
