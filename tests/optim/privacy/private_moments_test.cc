// Sums with noise: exact without it, of the stated deviation with it, and a step like any other to
// the accountant.
#include <sotto/optim/privacy/private_moments.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/base/error.h>
#include <sotto/base/philox.h>
#include <sotto/optim/privacy/privacy_options.h>

namespace sotto::test::private_moments_test {

namespace {

std::vector<double> row_of(RandomStream& stream, std::size_t columns) {
  std::vector<double> row(columns);
  for (double& value : row) {
    value = 2 * stream.uniform() - 1;
  }
  return row;
}

/// How far one more row moves all exact sums together.
double moved_by(const std::vector<double>& row) {
  RandomStream stream({.seed = 3, .purpose = Purpose::test});
  PrivateMoments without(row.size());
  for (int i = 0; i < 50; ++i) {
    without.add(row_of(stream, row.size()));
  }
  PrivateMoments with = without;
  with.add(row);
  const auto a = without.release(0, SecretKey::fresh());
  const auto b = with.release(0, SecretKey::fresh());
  double squares = (b.rows - a.rows) * (b.rows - a.rows);
  for (std::size_t k = 0; k < row.size(); ++k) {
    squares += std::pow(b.sums[k] - a.sums[k], 2) + std::pow(b.squares[k] - a.squares[k], 2);
  }
  return std::sqrt(squares);
}

}  // namespace

TEST_CASE("private moments: without noise they are the sums") {
  PrivateMoments moments(2);
  moments.add(std::vector<double>{0.5, -1});
  moments.add(std::vector<double>{0.25, 1});
  const auto released = moments.release(0, SecretKey::fresh());
  CHECK(released.rows == 2);
  CHECK(released.sums == std::vector<double>{0.75, 0});
  CHECK(released.squares == std::vector<double>{0.3125, 2});
}

TEST_CASE("private moments: no row moves the sums by more than the sensitivity, and some does") {
  for (const std::size_t columns : {1U, 3U, 10U}) {
    const double most = PrivateMoments(columns).sensitivity();
    CHECK(most == doctest::Approx(std::sqrt(1.0 + 2.0 * static_cast<double>(columns))));
    RandomStream stream({.seed = 8, .purpose = Purpose::test});
    for (int i = 0; i < 100; ++i) {
      CHECK(moved_by(row_of(stream, columns)) <= most);
    }
    std::vector<double> corner(columns, 1.0);
    corner.front() = -1;
    CHECK(moved_by(corner) == doctest::Approx(most));
  }
}

TEST_CASE("private moments: noise has mean 0 and the deviation sigma times the sensitivity") {
  constexpr double kNoise = 2;
  PrivateMoments moments(4);
  moments.add(std::vector<double>{0.1, 0.2, 0.3, 0.4});
  double sum = 0;
  double squares = 0;
  int count = 0;
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    const auto released = moments.release(kNoise, SecretKey::for_tests(seed, 0));
    for (const double noise :
         {released.rows - 1, released.sums[1] - 0.2, released.squares[3] - 0.16}) {
      sum += noise;
      squares += noise * noise;
      ++count;
    }
  }
  const double deviation = kNoise * moments.sensitivity();
  CHECK(std::abs(sum / count) < 4 * deviation / std::sqrt(count));
  CHECK(std::sqrt(squares / count) == doctest::Approx(deviation).epsilon(0.04));
}

TEST_CASE("what was told before counts: epsilon, allowed steps and the noise that is chosen") {
  PrivacyOptions options{.unit = PrivacyUnit::example,
                         .clip_norm = 1,
                         .noise_multiplier = 1.5,
                         .sampling_rate = 0.05,
                         .batch = 32,
                         .epsilon = 4};
  const std::uint64_t alone = allowed_steps(options);
  PrivacyAccountant both;
  options.before = {{.noise_multiplier = 3, .sampling_rate = 1}};
  both.add(options.before.front(), 1);
  CHECK(epsilon_spent(options, 0) == both.epsilon(options.delta));
  both.add(options.step(), 100);
  CHECK(epsilon_spent(options, 100) == both.epsilon(options.delta));
  const std::uint64_t left = allowed_steps(options);
  CHECK(left < alone);
  CHECK(epsilon_spent(options, left) <= 4);
  CHECK(epsilon_spent(options, left + 1) > 4);
  options.noise_multiplier =
      noise_multiplier_for(4, options.delta, options.sampling_rate, 500, options.before);
  CHECK(epsilon_spent(options, 500) <= 4);
  CHECK(epsilon_spent(options, 500) > 3.99);
  CHECK(told_before_text(options.before) == "3");
  options.before = {{.noise_multiplier = 0.5, .sampling_rate = 1}};
  CHECK_THROWS_AS(check_privacy(options), Error);
}

}  // namespace sotto::test::private_moments_test
