// Factors that clip messages to the median of their lengths (optim/exchange/median_clip.h).
#include <sotto/optim/exchange/median_clip.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include <doctest/doctest.h>

#include "optim/noise.h"
#include "support/seed.h"

namespace sotto::test::median_clip_test {

namespace {

/// The factors of messages of one element each.
std::vector<float> factors_of(MedianClip& clip, const std::vector<float>& messages) {
  const auto rank_of = [](std::size_t j) { return static_cast<Rank>(j); };
  for (std::size_t j = 0; j < messages.size(); ++j) {
    clip.measure(rank_of(j), std::span(messages).subspan(j, 1));
  }
  clip.settle();
  std::vector<float> factors;
  for (std::size_t j = 0; j < messages.size(); ++j) {
    factors.push_back(clip.factor(rank_of(j)));
  }
  return factors;
}

}  // namespace

TEST_CASE("a message counts as much as the median of the lengths allows") {
  const std::uint64_t seed = test::drawn_seed();
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  for (int repeat = 0; repeat < 200; ++repeat) {
    const std::size_t nodes = 1 + random() % 12;
    const std::size_t dimension = 1 + random() % 50;
    MedianClip clip(static_cast<int>(nodes));
    std::vector<double> lengths;
    for (std::size_t j = 0; j < nodes; ++j) {
      auto message = gaussian(random(), dimension);
      double squares = 0;
      for (float& value : message) {
        value *= j % 3 == 0 ? 1000.0F : 1.0F;
        squares += static_cast<double>(value) * static_cast<double>(value);
      }
      lengths.push_back(std::sqrt(squares));
      clip.measure(static_cast<Rank>(j), message);
    }
    clip.settle();
    auto sorted = lengths;
    std::ranges::sort(sorted);
    const double median = sorted[(nodes - 1) / 2];
    for (std::size_t j = 0; j < nodes; ++j) {
      const auto factor = static_cast<double>(clip.factor(static_cast<Rank>(j)));
      REQUIRE(factor == doctest::Approx(std::fmin(1, median / lengths[j])).epsilon(1e-6));
    }
  }
}

TEST_CASE("messages of zeros are not among those of which the median is, and hold nobody") {
  MedianClip clip(5);
  CHECK(factors_of(clip, {0, 0, 0, 4, 2}) == std::vector<float>{1, 1, 1, 0.5F, 1});
  CHECK(factors_of(clip, {0, 0, 0, 0, 0}) == std::vector<float>{1, 1, 1, 1, 1});
  CHECK(factors_of(clip, {0, 0, 0, 0, 7}) == std::vector<float>{1, 1, 1, 1, 1});
}

TEST_CASE("factors are those of the lengths noted last, and 1 before any") {
  MedianClip clip(3);
  CHECK(clip.factor(2) == 1);
  CHECK(factors_of(clip, {1, -8, 2}) == std::vector<float>{1, 0.25F, 1});
  CHECK(factors_of(clip, {4, 1, -1}) == std::vector<float>{0.25F, 1, 1});
}

}  // namespace sotto::test::median_clip_test
