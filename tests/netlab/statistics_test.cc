// What the held-out runs are summed up with.
#include <array>
#include <cmath>
#include <span>

#include <doctest/doctest.h>

#include "bench/support/statistics.h"

namespace sotto::test::statistics_test {

using namespace sotto::bench;

TEST_CASE("quantiles lie between their neighbours") {
  const std::array<double, 5> values = {5, 1, 3, 2, 4};
  CHECK(quantile(values, 0) == 1);
  CHECK(quantile(values, 0.5) == 3);
  CHECK(quantile(values, 1) == 5);
  CHECK(quantile(values, 0.95) == doctest::Approx(4.8));
  CHECK(std::isnan(quantile({}, 0.5)));
}

TEST_CASE("Kendall's τ counts pairs in order") {
  const std::array<double, 4> rising = {1, 2, 3, 4};
  const std::array<double, 4> falling = {9, 7, 5, 3};
  const std::array<double, 4> one_swap = {1, 3, 2, 4};
  const std::array<double, 4> tied = {1, 2, 2, 3};
  CHECK(kendall_tau(rising, rising) == 1);
  CHECK(kendall_tau(rising, falling) == -1);
  CHECK(kendall_tau(rising, one_swap) == doctest::Approx(4.0 / 6));
  CHECK(kendall_tau(rising, tied) == doctest::Approx(5 / std::sqrt(30.0)));
}

}  // namespace sotto::test::statistics_test
