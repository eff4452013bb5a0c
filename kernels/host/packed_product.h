// What MatrixProduct asks of an instruction set. Private to the kernels. Pure functions on views;
// thread-safe.
#pragma once

#include <cstddef>

#include "../matrix_product.h"

namespace sotto {

/// Rows of the right factor that are packed at a time: a strip of the left one and a panel of these
/// stay in the first cache.
inline constexpr std::size_t kPackedDepth = 256;
/// Columns that are packed at a time: with kPackedDepth rows they stay in the second cache.
inline constexpr std::size_t kPackedWidth = 256;

/// A product to compute.
struct PackedProduct {
  ProductShape shape;
  const float* a = nullptr;
  const float* b = nullptr;
  bool transposed = false;  ///< b is given transposed, `columns` × `inner`
  bool upper = false;       ///< only elements on and above the diagonal need be computed
  float* out = nullptr;
  float* packed = nullptr;  ///< room for kPackedDepth × kPackedWidth floats
};

/// Computes it with the best instruction set that there is.
void compute(const PackedProduct& product);

}  // namespace sotto
