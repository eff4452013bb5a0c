// The mean of a round's models taken one by one (study/simulation/model_spread.h), beside sums over
// all of them in long double.
#include <sotto/study/simulation/model_spread.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <random>
#include <vector>

#include <doctest/doctest.h>

namespace sotto::test::model_spread_test {

using study::ModelSpread;

namespace {

struct Drawn {
  std::vector<std::vector<float>> models;
  std::vector<double> weights;
};

/// Models about a common one, `spread` apart.
Drawn draw(std::mt19937_64& random, float spread, bool weighted) {
  const std::size_t nodes = 1 + random() % 40;
  const std::size_t length = 1 + random() % 50;
  std::normal_distribution<float> normal;
  std::vector<float> middle(length);
  std::ranges::generate(middle, [&] { return normal(random); });
  Drawn drawn;
  for (std::size_t node = 0; node < nodes; ++node) {
    drawn.models.push_back(middle);
    for (float& value : drawn.models.back()) {
      value += spread * normal(random);
    }
    drawn.weights.push_back(weighted ? static_cast<double>(1 + random() % 9) : 0.25);
  }
  return drawn;
}

ModelSpread spread_of(const Drawn& drawn) {
  ModelSpread spread;
  for (std::size_t node = 0; node < drawn.models.size(); ++node) {
    spread.add(drawn.models[node], drawn.weights[node]);
  }
  return spread;
}

}  // namespace

TEST_CASE("mean and distance of models that come one by one are those of all") {
  constexpr std::uint64_t kSeed = 20261130;
  std::mt19937_64 random(kSeed);
  for (int number = 0; number < 200; ++number) {
    CAPTURE(kSeed);
    CAPTURE(number);
    const float spread = std::pow(10.0F, static_cast<float>(number % 8) - 6);
    const Drawn drawn = draw(random, spread, number % 2 == 1);
    const ModelSpread found = spread_of(drawn);
    const std::vector<float> mean = found.mean();
    REQUIRE(mean.size() == drawn.models[0].size());
    long double squares = 0;
    for (std::size_t k = 0; k < mean.size(); ++k) {
      long double sum = 0;
      long double weights = 0;
      for (std::size_t node = 0; node < drawn.models.size(); ++node) {
        sum += static_cast<long double>(drawn.weights[node]) * drawn.models[node][k];
        weights += drawn.weights[node];
        const long double off = static_cast<long double>(drawn.models[node][k]) - mean[k];
        squares += off * off;
      }
      CHECK(mean[k] == static_cast<float>(sum / weights));
    }
    const auto nodes = static_cast<long double>(drawn.models.size());
    CHECK(found.squared_distance(mean) ==
          doctest::Approx(static_cast<double>(squares / nodes)).epsilon(1e-9));
  }
}

TEST_CASE("the order in which models come does not show in their mean") {
  constexpr std::uint64_t kSeed = 7;
  std::mt19937_64 random(kSeed);
  for (int number = 0; number < 50; ++number) {
    CAPTURE(kSeed);
    CAPTURE(number);
    Drawn drawn = draw(random, 0.1F, false);
    const std::vector<float> mean = spread_of(drawn).mean();
    std::ranges::shuffle(drawn.models, random);
    CHECK(spread_of(drawn).mean() == mean);
  }
}

TEST_CASE("models that are all the same lie at no distance from their mean, which they are") {
  const std::vector<float> model = {0.1F, -3e30F, 1e-40F, 7};
  ModelSpread spread;
  CHECK(spread.mean().empty());
  CHECK(spread.squared_distance({}) == 0);
  for (const double weight : {1.0, 1.0, 3.0}) {
    spread.add(model, weight);
  }
  CHECK(spread.mean() == model);
  CHECK(spread.squared_distance(model) == 0);
}

}  // namespace sotto::test::model_spread_test
