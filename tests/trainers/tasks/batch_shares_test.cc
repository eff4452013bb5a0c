// How a step's examples are shared out by speed.
#include <cstdint>
#include <numeric>
#include <random>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/trainers/tasks/batch_shares.h>

#include "support/seed.h"

namespace sotto::test::batch_shares_test {

namespace {

using Shares = std::vector<std::size_t>;

Shares shares(std::size_t examples, const std::vector<double>& speeds) {
  return share_examples(examples, speeds);
}

}  // namespace

TEST_CASE("examples go by speed, rounded by largest remainders") {
  CHECK(shares(128, {4, 4, 4, 4}) == Shares{32, 32, 32, 32});
  CHECK(shares(128, {1, 1, 1, 0.25}) == Shares{40, 39, 39, 10});
  CHECK(shares(10, {3, 2, 2}) == Shares{4, 3, 3});
  CHECK(shares(7, {0.1, 0.1, 0.1}) == Shares{3, 2, 2});
  CHECK(shares(3, {1e6, 1, 1e-3}) == Shares{1, 1, 1});  // each has one at least
  CHECK(shares(100, {1e9, 1}) == Shares{99, 1});
}

TEST_CASE("shares of drawn speeds sum to the examples and are within one of their parts") {
  const std::uint64_t seed = test::drawn_seed();
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  for (int k = 0; k < 200; ++k) {
    const auto nodes = std::uniform_int_distribution<std::size_t>(1, 12)(random);
    const auto examples = nodes * std::uniform_int_distribution<std::size_t>(40, 80)(random);
    std::vector<double> speeds(nodes);
    for (double& speed : speeds) {
      speed = std::uniform_real_distribution<double>(0.5, 2)(random);
    }
    const double all = std::accumulate(speeds.begin(), speeds.end(), 0.0);
    const Shares found = shares(examples, speeds);
    CHECK(std::accumulate(found.begin(), found.end(), std::size_t{0}) == examples);
    for (std::size_t i = 0; i < nodes; ++i) {
      const double exact = static_cast<double>(examples) * speeds[i] / all;
      CHECK(std::abs(static_cast<double>(found[i]) - exact) <= 1 + 1e-9);
    }
  }
}

}  // namespace sotto::test::batch_shares_test
