#include "dct.h"

#include <cmath>
#include <numbers>

#include <sotto/base/check.h>

#include "host/transform_columns.h"
#include "reference/plain_dct.h"

namespace sotto {
namespace {

/// cos(π numerator / denominator) in double precision, of a small argument.
double cosine(std::size_t numerator, std::size_t denominator) {
  const std::size_t turn = numerator % (2 * denominator);
  return std::cos(std::numbers::pi * static_cast<double>(turn) / static_cast<double>(denominator));
}

/// The orthonormal DCT-II of n elements, or the DCT-IV.
std::vector<float> matrix_of(std::size_t n, bool fourth) {
  std::vector<float> t(n * n);
  for (std::size_t k = 0; k < n; ++k) {
    const double length = std::sqrt((k == 0 && !fourth ? 1.0 : 2.0) / static_cast<double>(n));
    for (std::size_t j = 0; j < n; ++j) {
      const double value = fourth ? cosine((2 * j + 1) * (2 * k + 1), 4 * n)  //
                                  : cosine((2 * j + 1) * k, 2 * n);
      t[k * n + j] = static_cast<float>(length * value);
    }
  }
  return t;
}

DctFactors factors_of(std::size_t length) {
  check(length >= 1 && length <= kLongestDct, "a cosine transform of 1 to 64 elements");
  DctFactors f = {.length = length, .odd = length};
  double scale = 1;
  for (; f.odd % 2 == 0; f.odd /= 2, ++f.levels) {
    const std::size_t n = f.odd;
    for (std::size_t j = 0; j < n / 2; ++j) {
      f.turns.push_back(static_cast<float>(cosine(2 * j + 1, 4 * n)));
    }
    for (std::size_t j = 0; j < n / 2; ++j) {
      f.turns.push_back(static_cast<float>(cosine(2 * n - (2 * j + 1), 4 * n)));  // the sine
    }
    scale *= std::numbers::sqrt2 / 2;
  }
  f.odd_second = matrix_of(f.odd, false);
  if (f.levels > 0) {
    f.odd_fourth = matrix_of(f.odd, true);
  }
  f.scale = static_cast<float>(scale);
  return f;
}

void require_rows(const DctFactors& factors, std::size_t columns, std::size_t size) {
  check(size == factors.length * columns, "a matrix with as many rows as the transform is long");
}

}  // namespace

Dct::Dct(std::size_t length) : factors_(factors_of(length)) {}

void Dct::forward(std::size_t columns, std::span<float> x) const {
  require_rows(factors_, columns, x.size());
  transform_columns(factors_, false, columns, x.data());
}

void Dct::inverse(std::size_t columns, std::span<float> x) const {
  require_rows(factors_, columns, x.size());
  transform_columns(factors_, true, columns, x.data());
}

void Dct::plain_forward(std::size_t columns, std::span<float> x) const {
  require_rows(factors_, columns, x.size());
  plain_transform(factors_, false, columns, x.data());
}

void Dct::plain_inverse(std::size_t columns, std::span<float> x) const {
  require_rows(factors_, columns, x.size());
  plain_transform(factors_, true, columns, x.data());
}

}  // namespace sotto
