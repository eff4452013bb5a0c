// Discrete cosine transforms down the columns of a matrix in float32, with a fixed order of
// arithmetic: the bits are those of plain_forward and plain_inverse, on every processor and with
// any width of registers.
//
// Forward is the orthonormal DCT-II of N elements, y = T x with T_kj = √(2/N) cos(π (2j + 1) k /
// (2N)), row 0 times 1/√2; inverse is its transpose. Even lengths are halved by orthonormal stages
// (Plonka and Tasche, "Fast and numerically stable algorithms for discrete cosine transforms",
// Linear Algebra and its Applications 394, 2005): T is a DCT-II of the sums and a DCT-IV of the
// differences of x_j and x_(N−1−j), and a DCT-IV is two DCT-II of rotated pairs. Odd factors are
// multiplied with their matrices. The factor √½ of every stage is left to the end, so that elements
// grow by √N at most meanwhile. 64 elements take about 11 operations each.
//
// Rounding: ‖computed − T x‖ ≤ 2^-21 ‖x‖, where no product is denormal or overflows. The factors
// are cosines in double precision, rounded to float32.
//
// Thread safety: any number of threads. Ownership: an object owns its factors, which the
// constructor allocates; spans are views, and nothing of them is kept.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace sotto {

/// The longest transform.
inline constexpr std::size_t kLongestDct = 64;

/// The factors of the transforms of one length, 2^levels × odd.
struct DctFactors {
  std::size_t length = 0;
  std::size_t levels = 0;
  std::size_t odd = 0;
  /// For each even length n from `length` on, halved each time: cos(π (2j + 1) / (4n)) for the n/2
  /// first j, then as many sines.
  std::vector<float> turns = {};
  std::vector<float> odd_second = {};  ///< the matrix of the DCT-II of `odd` elements
  /// The matrix of the DCT-IV, √(2/n) cos(π (2j + 1)(2k + 1) / (4n)), where there are levels.
  std::vector<float> odd_fourth = {};
  float scale = 1;  ///< √½ for every level
};

class Dct {
 public:
  /// Transforms of `length` elements, 1 … kLongestDct (an invariant, checked).
  explicit Dct(std::size_t length);

  std::size_t length() const { return factors_.length; }

  /// x ← T x for each column of x, a matrix of length() rows and `columns` columns in row-major
  /// order.
  void forward(std::size_t columns, std::span<float> x) const;
  /// x ← Tᵀ x likewise.
  void inverse(std::size_t columns, std::span<float> x) const;

  /// forward, one column after the other in plain code: the definition that it is held to.
  void plain_forward(std::size_t columns, std::span<float> x) const;
  /// inverse, likewise.
  void plain_inverse(std::size_t columns, std::span<float> x) const;

 private:
  DctFactors factors_;
};

}  // namespace sotto
