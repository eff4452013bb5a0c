// Reductions against exact arithmetic. The host's sums are the reference's bytes (conformance), so
// what holds here holds for both.
#include <algorithm>
#include <cmath>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/base/philox.h>
#include <sotto/kernels/ops.h>

namespace sotto::test::reduce_test {

namespace {

/// The stated bound, relative to Σ|terms|.
constexpr long double kSumBound = 133 * 0x1p-24L;

std::vector<float> random_values(std::uint64_t seed, std::size_t count, double mean) {
  RandomStream stream({.seed = seed});
  std::vector<float> x(count);
  std::ranges::generate(x, [&] { return static_cast<float>(mean + stream.normal()); });
  return x;
}

}  // namespace

TEST_CASE("sums are within the stated bound of the true ones") {
  for (const double mean : {0.0, 3.0, -1000.0}) {
    for (const std::size_t count : {1UL, 31UL, 4096UL, 5000UL, 100000UL}) {
      INFO("mean ", mean, ", count ", count, ", seeds 11 and 12");
      const auto x = random_values(11, count, mean);
      const auto y = random_values(12, count, -mean);
      long double sum = 0;
      long double abs = 0;
      long double squares = 0;
      long double dot = 0;
      long double abs_dot = 0;
      for (std::size_t i = 0; i < count; ++i) {
        const long double a = x[i];
        const long double b = y[i];
        sum += a;
        abs += std::abs(a);
        squares += a * a;
        dot += a * b;
        abs_dot += std::abs(a * b);
      }
      const Ops& ops = host_ops();
      CHECK(std::abs(ops.sum(x) - sum) <= kSumBound * abs);
      CHECK(std::abs(ops.sum_abs(x) - abs) <= kSumBound * abs);
      CHECK(std::abs(ops.sum_squares(x) - squares) <= kSumBound * squares);
      CHECK(std::abs(ops.dot(x, y) - dot) <= kSumBound * abs_dot);
    }
  }
}

TEST_CASE("the error of the worst sum stays within the bound and a plain sum's does not") {
  // 1 + 2^-24 + 2^-24 + …: every small term is lost in a single accumulator.
  std::vector<float> x(kReduceBlock, 0x1p-24F);
  x[0] = 1.0F;
  const double truth = 1 + static_cast<double>(kReduceBlock - 1) * 0x1p-24;
  CHECK(std::abs(reference_ops().sum(x) - truth) <= static_cast<double>(kSumBound) * truth);
  float plain = 0;
  for (const float value : x) {
    plain += value;
  }
  CHECK(std::abs(static_cast<double>(plain) - truth) > static_cast<double>(kSumBound) * truth);
}

TEST_CASE("blocks are added in float64") {
  // In float32 the second block would be lost.
  std::vector<float> x(2 * kReduceBlock);
  x[0] = 0x1p30F;
  x[kReduceBlock] = 0x1p-10F;
  CHECK(reference_ops().sum(x) == 0x1p30 + 0x1p-10);
  CHECK(host_ops().sum(x) == 0x1p30 + 0x1p-10);
}

TEST_CASE("empty spans reduce to zero") {
  for (const Ops* ops : {&reference_ops(), &host_ops()}) {
    CHECK(ops->sum({}) == 0);
    CHECK(ops->sum_abs({}) == 0);
    CHECK(ops->sum_squares({}) == 0);
    CHECK(ops->dot({}, {}) == 0);
    CHECK(ops->min_max({}).min == 0);
    CHECK(ops->min_max({}).max == 0);
    CHECK(ops->count_non_finite({}).count == 0);
  }
}

TEST_CASE("minimum and maximum are exact and never −0") {
  const auto x = random_values(13, 3000, 0);
  const auto [low, high] = std::ranges::minmax(x);
  const std::vector<float> zeros(40, -0.0F);
  for (const Ops* ops : {&reference_ops(), &host_ops()}) {
    CHECK(ops->min_max(x).min == low);
    CHECK(ops->min_max(x).max == high);
    CHECK_FALSE(std::signbit(ops->min_max(zeros).min));
    CHECK_FALSE(std::signbit(ops->min_max(zeros).max));
  }
}

TEST_CASE("Adam follows its formula, and stands still where there never was a gradient") {
  const auto g = random_values(14, 257, 0);
  std::vector<float> gradient(g);
  gradient[3] = 0;
  std::vector<float> m(g.size());
  std::vector<float> v(g.size());
  std::vector<float> out(g.size());
  std::vector<double> m_true(g.size());
  std::vector<double> v_true(g.size());
  for (int t = 1; t <= 5; ++t) {
    const double first = 1e-3 / (1 - std::pow(0.9, t));
    const double root = 1 / std::sqrt(1 - std::pow(0.999, t));
    host_ops().adam(gradient, 0.9F, 0.999F, static_cast<float>(first), static_cast<float>(root),
                    0.0F, m, v, out);
    for (std::size_t i = 0; i < g.size(); ++i) {
      const double truth = gradient[i];
      m_true[i] = 0.9 * m_true[i] + 0.1 * truth;
      v_true[i] = 0.999 * v_true[i] + 0.001 * truth * truth;
    }
  }
  const double first = 1e-3 / (1 - std::pow(0.9, 5));
  const double root = 1 / std::sqrt(1 - std::pow(0.999, 5));
  for (std::size_t i = 0; i < g.size(); ++i) {
    const double expected = i == 3 ? 0 : first * m_true[i] / (std::sqrt(v_true[i]) * root);
    // Float32 rounds 0.999, and so 1 − β₂ to 2^-15 of itself; the rest is smaller.
    CHECK(static_cast<double>(out[i]) == doctest::Approx(expected).epsilon(1e-4));
  }
}

}  // namespace sotto::test::reduce_test
