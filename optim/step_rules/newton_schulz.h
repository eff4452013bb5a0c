// Newton–Schulz steps: from a matrix towards the nearest one with orthonormal rows or columns.
//
// Source: Jordan et al., "Muon: an optimizer for hidden layers in neural networks", 2024,
// https://kellerjordan.github.io/posts/muon; the steps after Björck and Bowie 1971 and Kovarik
// 1970.
//
// Rule, for a matrix U of r × c, turned where r > c, X = U / (‖U‖_F + 1e-7) first, five times:
//   A = X Xᵀ;  X ← a X + (b A + c A²) X,  (a, b, c) = (3.4445, −4.7750, 2.0315)
// Singular vectors stay: X = V f(Σ) Wᵀ, with f(σ) in 0.68 … 1.21 for σ/‖U‖_F in 0.003 … 1, and
// near 485 σ/‖U‖_F below. The polynomial is chosen to lift small values fast, and does not converge
// to 1. Multiplying U by a positive number changes nothing but through the 1e-7.
//
// All is in float32, in the order of kernels/matrix_product.h: the bits are the same on every
// processor, where the source has bfloat16. 10 m² n + 5 m³ multiply-adds, m = min(r, c) and
// n = max(r, c), about a quarter of which symmetry saves.
// Memory: 2 (m n + m²) floats for the largest matrix. One thread at a time; allocates only in
// `reserve`.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <sotto/kernels/matrix_product.h>
#include <sotto/kernels/ops.h>

namespace sotto {

class NewtonSchulz {
 public:
  /// `ops` are the host's.
  explicit NewtonSchulz(const Ops& ops) : ops_(ops) {}

  /// Makes room for matrices of rows × columns.
  void reserve(std::size_t rows, std::size_t columns);
  /// Five steps from u, in row-major order, which `out` takes; both may be one span. Elements that
  /// are not finite spread.
  void orthogonalize(std::size_t rows, std::size_t columns, std::span<const float> u,
                     std::span<float> out);

 private:
  const Ops& ops_;
  MatrixProduct product_;
  std::vector<float> x_;      ///< X
  std::vector<float> moved_;  ///< (b A + c A²) X
  std::vector<float> gram_;   ///< A
  std::vector<float> square_;
};

}  // namespace sotto
