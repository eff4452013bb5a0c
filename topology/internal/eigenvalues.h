// Extreme eigenvalues of symmetric maps that are only known by what they do to a vector.
// Thread-safe.
#pragma once

#include <cstddef>
#include <functional>
#include <span>

namespace sotto::internal {

/// y ← A x for a symmetric A; x and y do not overlap.
using SymmetricMap = std::function<void(std::span<const double> x, std::span<double> y)>;

enum class Ends { smallest, largest, both };

/// An end that was not asked for is an estimate only.
struct ExtremeEigenvalues {
  double smallest = 0;
  double largest = 0;
};

/// The extreme eigenvalues of a symmetric map on R^n, n ≥ 1. Dense for small n; else by
/// Lanczos. Absolute error about 1e-12 times the largest magnitude, relative error about 1e-9
/// as long as that is larger.
ExtremeEigenvalues extreme_eigenvalues(std::size_t n, const SymmetricMap& map, Ends ends);

/// All n³ of it (Eigen's SelfAdjointEigenSolver).
ExtremeEigenvalues extreme_eigenvalues_dense(std::size_t n, const SymmetricMap& map);

/// Lanczos without reorthogonalization: three vectors of memory, and as many products as the
/// spectrum's ends need, about n for a line and a few dozens for an expander. Lost orthogonality
/// only repeats eigenvalues that were found already (C. C. Paige, "Accuracy and effectiveness of
/// the Lanczos algorithm for the symmetric eigenproblem", Linear Algebra Appl. 34, 1980).
/// Throws Error when an end has not been found after minutes of work.
ExtremeEigenvalues extreme_eigenvalues_lanczos(std::size_t n, const SymmetricMap& map, Ends ends);

}  // namespace sotto::internal
