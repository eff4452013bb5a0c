// Times of gradients: the mean that is said of a distribution is that of its draws.
#include <cstdint>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/sim/compute_time.h>

#include "support/seed.h"

namespace sotto::test::compute_time_test {

TEST_CASE("the mean time of a gradient is that of many draws") {
  const std::uint64_t seed = test::drawn_seed();
  CAPTURE(seed);
  using Kind = ComputeTime::Kind;
  const std::vector<ComputeTime> times = {
      {.seconds = 0.02, .slowdown = 3},
      {.kind = Kind::uniform, .seconds = 0.02, .spread = 0.5},
      {.kind = Kind::lognormal, .seconds = 0.02, .spread = 0.4},
      {.kind = Kind::exponential, .seconds = 0.02},
      {.seconds = 0.02, .stall_probability = 0.1, .stall_factor = 5}};
  constexpr Round kDraws = 20'000;
  for (const ComputeTime& time : times) {
    double sum = 0;
    for (Round round = 0; round < kDraws; ++round) {
      sum += to_seconds(draw(time, seed, 1, round));
    }
    // Six deviations of the widest, whose is its mean: 6 / sqrt(20,000).
    CHECK(sum / kDraws == doctest::Approx(mean_seconds(time)).epsilon(0.045));
  }
}

}  // namespace sotto::test::compute_time_test
