// Products of matrices in float32 with a fixed order of summation: every element of a product is
// Σ_k a_ik b_kj, from 0 on with k ascending, each product and each sum rounded. The bits are
// therefore those of three plain loops, on every processor and with any width of registers.
//
// Thread safety: one thread at a time for each object. Ownership: owns room for a part of a factor,
// allocated by the constructor; spans are views, and nothing of them is kept.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace sotto {

/// The sizes of a product of a `rows` × `inner` and an `inner` × `columns` matrix.
struct ProductShape {
  std::size_t rows = 0;
  std::size_t inner = 0;
  std::size_t columns = 0;
};

class MatrixProduct {
 public:
  /// Allocates the room, a quarter of a MiB.
  MatrixProduct();

  /// out ← a b, all in row-major order; `out` is neither a nor b. Spans have the sizes that `shape`
  /// says (an invariant, checked).
  void times(const ProductShape& shape, std::span<const float> a, std::span<const float> b,
             std::span<float> out);
  /// out ← a bᵀ, for b of `columns` × `inner`; else as times().
  void times_transposed(const ProductShape& shape, std::span<const float> a,
                        std::span<const float> b, std::span<float> out);
  /// out ← x xᵀ, for x of `rows` × `columns`; every pair of equal elements is computed once.
  void gram(std::size_t rows, std::size_t columns, std::span<const float> x, std::span<float> out);
  /// out ← a a, for a of `rows` × `rows` that is symmetric to the bit, which the result then is,
  /// too; every pair of equal elements is computed once.
  void square(std::size_t rows, std::span<const float> a, std::span<float> out);

 private:
  std::vector<float> packed_;
};

/// out ← xᵀ, for x of `rows` × `columns`; both are in row-major order and apart. Spans have these
/// sizes (an invariant, checked).
void transpose(std::size_t rows, std::size_t columns, std::span<const float> x,
               std::span<float> out);

/// MatrixProduct::times by three plain loops: the definition that it is held to.
void plain_product(const ProductShape& shape, std::span<const float> a, std::span<const float> b,
                   std::span<float> out);

}  // namespace sotto
