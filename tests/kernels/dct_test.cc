// Discrete cosine transforms: against their formula, and with the bits of plain code.
#include <sotto/kernels/dct.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/base/philox.h>
#include <sotto/kernels/ops.h>

#include <sotto/kernels/host/targets.h>

namespace sotto::test::dct_test {

namespace {

std::vector<float> drawn(std::uint64_t seed, std::size_t count) {
  RandomStream stream({.seed = seed, .purpose = Purpose::test});
  std::vector<float> values(count);
  std::ranges::generate(values, [&] { return static_cast<float>(stream.normal()); });
  return values;
}

double norm(const std::vector<float>& x) {
  double sum = 0;
  for (const float value : x) {
    sum += static_cast<double>(value) * static_cast<double>(value);
  }
  return std::sqrt(sum);
}

/// ‖x − y‖
double distance(const std::vector<float>& x, const std::vector<double>& y) {
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double difference = static_cast<double>(x[i]) - y[i];
    sum += difference * difference;
  }
  return std::sqrt(sum);
}

/// T_kj, in double precision.
double entry(std::size_t n, std::size_t k, std::size_t j) {
  const double row = k == 0 ? std::numbers::sqrt2 / 2 : 1;
  return row * std::sqrt(2 / static_cast<double>(n)) *
         std::cos(std::numbers::pi * static_cast<double>((2 * j + 1) * k) /
                  (2 * static_cast<double>(n)));
}

/// T x of each column, or Tᵀ x.
std::vector<double> exact(std::size_t n, std::size_t columns, const std::vector<float>& x,
                          bool inverse) {
  std::vector<double> y(x.size());
  for (std::size_t k = 0; k < n; ++k) {
    for (std::size_t j = 0; j < n; ++j) {
      for (std::size_t c = 0; c < columns; ++c) {
        y[k * columns + c] +=
            (inverse ? entry(n, j, k) : entry(n, k, j)) * static_cast<double>(x[j * columns + c]);
      }
    }
  }
  return y;
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return std::ranges::equal(a, b, [](float x, float y) {
    return std::bit_cast<std::uint32_t>(x) == std::bit_cast<std::uint32_t>(y);
  });
}

constexpr double kRounding = 0x1p-21;

}  // namespace

TEST_CASE("cosine transforms of every length are their formula, up to the stated rounding") {
  for (std::size_t n = 1; n <= kLongestDct; ++n) {
    CAPTURE(n);
    const Dct dct(n);
    CHECK(dct.length() == n);
    const std::uint64_t seed = 5000 + n;
    CAPTURE(seed);
    const std::size_t columns = 1 + n % 5;
    const auto x = drawn(seed, n * columns);
    auto forward = x;
    dct.forward(columns, forward);
    CHECK(distance(forward, exact(n, columns, x, false)) <= kRounding * norm(x));
    CHECK(norm(forward) == doctest::Approx(norm(x)).epsilon(kRounding));  // Parseval
    auto inverse = x;
    dct.inverse(columns, inverse);
    CHECK(distance(inverse, exact(n, columns, x, true)) <= kRounding * norm(x));
    dct.inverse(columns, forward);
    CHECK(distance(forward, {x.begin(), x.end()}) <= 2 * kRounding * norm(x));
  }
}

TEST_CASE("columns of the matrix of a cosine transform are orthonormal") {
  for (const std::size_t n : {1U, 2U, 3U, 7U, 12U, 48U, 63U, 64U}) {
    CAPTURE(n);
    // T applied to the unit vectors.
    std::vector<float> t(n * n);
    for (std::size_t i = 0; i < n; ++i) {
      t[i * n + i] = 1;
    }
    Dct(n).forward(n, t);
    for (std::size_t a = 0; a < n; ++a) {
      for (std::size_t b = 0; b < n; ++b) {
        double product = 0;
        for (std::size_t i = 0; i < n; ++i) {
          product += static_cast<double>(t[i * n + a]) * static_cast<double>(t[i * n + b]);
        }
        CHECK(std::abs(product - (a == b ? 1 : 0)) <= 2 * kRounding);
      }
    }
  }
}

TEST_CASE("a constant is its first coefficient, and a cosine of the basis one other") {
  for (const std::size_t n : {1U, 2U, 5U, 24U, 63U, 64U}) {
    CAPTURE(n);
    const Dct dct(n);
    for (std::size_t k = 0; k < n; ++k) {
      CAPTURE(k);
      std::vector<float> x(n);
      for (std::size_t j = 0; j < n; ++j) {
        x[j] = static_cast<float>(3 * entry(n, k, j));
      }
      dct.forward(1, x);
      for (std::size_t i = 0; i < n; ++i) {
        CHECK(std::abs(x[i] - (i == k ? 3.0F : 0.0F)) <= 3e-6F);
      }
    }
    std::vector<float> zero(n);
    dct.forward(1, zero);
    CHECK(std::ranges::all_of(zero, [](float value) { return value == 0; }));
  }
}

TEST_CASE("cosine transforms have the bits of plain code, on every instruction set") {
  for (const std::int64_t target : host_targets()) {
    use_host_target(target);
    INFO(host_ops().name());
    for (std::size_t n = 1; n <= kLongestDct; ++n) {
      CAPTURE(n);
      const Dct dct(n);
      for (const std::size_t columns : {0U, 1U, 3U, 16U, 21U, 64U}) {
        CAPTURE(columns);
        const std::uint64_t seed = 100 * n + columns;
        CAPTURE(seed);
        const auto x = drawn(seed, n * columns);
        auto plain = x;
        auto fast = x;
        dct.plain_forward(columns, plain);
        dct.forward(columns, fast);
        CHECK(same_bits(plain, fast));
        dct.plain_inverse(columns, plain);
        dct.inverse(columns, fast);
        CHECK(same_bits(plain, fast));
      }
    }
  }
  use_host_target(0);
}

}  // namespace sotto::test::dct_test
