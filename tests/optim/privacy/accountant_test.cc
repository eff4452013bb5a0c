// Privacy accounting against published figures, and against a numerical integral of its definition.
#include <sotto/optim/privacy/accountant.h>

#include <cmath>
#include <limits>
#include <numbers>

#include <doctest/doctest.h>

#include <sotto/base/error.h>
#include <sotto/optim/privacy/gaussian_rdp.h>
#include <sotto/optim/privacy/privacy_options.h>

namespace sotto::test::accountant_test {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

double epsilon_after(double sigma, double q, std::uint64_t steps, double delta = 1e-5) {
  PrivacyAccountant accountant;
  accountant.add({sigma, q}, steps);
  return accountant.epsilon(delta);
}

/// log A_α by the trapezoidal rule, relative to the integrand's largest value.
double integrated_log_a(double sigma, double q, double alpha) {
  const double step = sigma / 400;
  const double from = -12 * sigma;
  const auto points = static_cast<int>((alpha + 24 * sigma) / step);
  const auto log_integrand = [&](double z) {
    const double ratio = (2 * z - 1) / (2 * sigma * sigma);
    const double log_mixture = ratio > 0 ? ratio + std::log(q + (1 - q) * std::exp(-ratio))
                                         : std::log1p(q * std::expm1(ratio));
    return alpha * log_mixture - z * z / (2 * sigma * sigma);
  };
  double largest = -kInfinity;
  for (int k = 0; k < points; ++k) {
    largest = std::fmax(largest, log_integrand(from + k * step));
  }
  double sum = 0;
  for (int k = 0; k < points; ++k) {
    sum += std::exp(log_integrand(from + k * step) - largest);
  }
  return largest + std::log(sum * step / (sigma * std::sqrt(2 * std::numbers::pi)));
}

}  // namespace

TEST_CASE("privacy accounting: sigma 1.5, sampling 0.04, 2250 steps at delta 1e-5") {
  PrivacyAccountant accountant;
  accountant.add({.noise_multiplier = 1.5, .sampling_rate = 0.04}, 2250);
  CHECK(std::abs(accountant.epsilon(1e-5) - 7.32911117143) < 5e-11);
  CHECK(std::abs(accountant.classic_epsilon(1e-5) - 8.0738) < 5e-5);
}

TEST_CASE("privacy accounting: orders 5, 50 and 100 at sigma 2.5, sampling 0.01, 50 steps") {
  const auto rdp = [](double order) { return 50 * subsampled_gaussian_rdp(2.5, 0.01, order); };
  CHECK(rdp(5) == doctest::Approx(2.18075656e-3).epsilon(5e-9));
  CHECK(rdp(50) == doctest::Approx(2.38460375e-2).epsilon(5e-9));
  CHECK(rdp(100) == doctest::Approx(167.416308).epsilon(5e-9));
}

TEST_CASE("no noise costs everything, no sampling nothing, and full sampling alpha / 2 sigma^2") {
  CHECK(epsilon_after(0, 0.01, 1) == kInfinity);
  CHECK(epsilon_after(1e-120, 0.01, 1) == kInfinity);
  CHECK(epsilon_after(1, 0, 1'000'000) == 0);
  CHECK(epsilon_after(1, 0.5, 0) == 0);
  for (const double order : {1.1, 2.0, 33.3, 1024.0}) {
    CHECK(subsampled_gaussian_rdp(3, 1, order) == doctest::Approx(order / 18));
    CHECK(subsampled_gaussian_rdp(3, 1 - 1e-12, order) == doctest::Approx(order / 18));
  }
}

TEST_CASE("the two series and the sum are the integral that they stand for") {
  for (const double sigma : {0.5, 1.0, 2.5, 20.0}) {
    for (const double q : {0.001, 0.04, 0.5, 0.9}) {
      for (const double alpha : {1.1, 1.7, 2.0, 4.3, 10.9, 17.0, 63.0}) {
        CAPTURE(sigma);
        CAPTURE(q);
        CAPTURE(alpha);
        const double expected = integrated_log_a(sigma, q, alpha);
        const double found = subsampled_gaussian_rdp(sigma, q, alpha) * (alpha - 1);
        CHECK(std::abs(found - expected) < 1e-11 * std::fmax(1, expected));
      }
    }
  }
}

TEST_CASE("whole orders keep their digits where the divergence is tiny") {
  // A_2 = 1 + q² (exp(1/σ²) − 1) exactly.
  for (const double q : {1e-8, 1e-5, 1e-3}) {
    const double sigma = 5;
    const double expected = std::log1p(q * q * std::expm1(1 / (sigma * sigma)));
    CHECK(subsampled_gaussian_rdp(sigma, q, 2) == doctest::Approx(expected).epsilon(1e-12));
  }
}

TEST_CASE("the divergence is continuous across whole orders") {
  for (const double order : {2.0, 5.0, 10.0}) {
    const double at = subsampled_gaussian_rdp(1.3, 0.02, order);
    CHECK(subsampled_gaussian_rdp(1.3, 0.02, order - 1e-7) == doctest::Approx(at).epsilon(1e-5));
    CHECK(subsampled_gaussian_rdp(1.3, 0.02, order + 1e-7) == doctest::Approx(at).epsilon(1e-5));
  }
}

TEST_CASE("epsilon falls with noise, and grows with sampling, steps and a smaller delta") {
  for (const double q : {0.002, 0.05, 1.0}) {
    for (const double sigma : {0.6, 1.0, 4.0}) {
      const double here = epsilon_after(sigma, q, 300);
      CAPTURE(q);
      CAPTURE(sigma);
      CHECK(epsilon_after(sigma * 1.05, q, 300) < here);
      CHECK(epsilon_after(sigma, q * 0.95, 300) < here);
      CHECK(epsilon_after(sigma, q, 301) > here);
      CHECK(epsilon_after(sigma, q, 300, 1e-6) > here);
      PrivacyAccountant accountant;
      accountant.add({sigma, q}, 300);
      CHECK(accountant.classic_epsilon(1e-5) > here);
    }
  }
}

TEST_CASE("composition is addition, in any order and with any mixture") {
  PrivacyAccountant parts;
  parts.add({1.5, 0.04}, 1000);
  parts.add({3, 0.1}, 10);
  parts.add({1.5, 0.04}, 1250);
  PrivacyAccountant whole;
  whole.add({3, 0.1}, 10);
  whole.add({1.5, 0.04}, 2250);
  CHECK(parts.epsilon(1e-5) == doctest::Approx(whole.epsilon(1e-5)).epsilon(1e-12));
  CHECK(whole.epsilon(1e-5) > epsilon_after(1.5, 0.04, 2250));
}

TEST_CASE("the logarithm of erfc goes on where erfc is 0, without a step") {
  CHECK(log_erfc(-30) == doctest::Approx(std::numbers::ln2));
  CHECK(log_erfc(0) == 0);
  // erfc(26) = 5.663192408856142846475727896926052e-296
  CHECK(log_erfc(26) == doctest::Approx(std::log(5.663192408856142846e-296)).epsilon(1e-14));
  const double below = log_erfc(25 - 1e-9);
  CHECK(log_erfc(25) == doctest::Approx(below).epsilon(1e-9));
  CHECK(std::isfinite(log_erfc(1e6)));
  CHECK(log_erfc(1e6) < -1e12);
}

TEST_CASE("the allowed steps are the most that the budget covers") {
  for (const double q : {0.004, 0.05, 1.0}) {
    for (const double epsilon : {0.5, 2.0, 8.0}) {
      CAPTURE(q);
      CAPTURE(epsilon);
      const GaussianStep step{2.0, q};
      const auto steps = steps_within(step, epsilon, 1e-5);
      CHECK(epsilon_after(2, q, steps) <= epsilon);
      CHECK(epsilon_after(2, q, steps + 1) > epsilon);
    }
  }
  CHECK(steps_within({1, 0}, 1, 1e-5) == kUnlimitedSteps);
  CHECK(steps_within({0, 0.1}, 1, 1e-5) == 0);
  CHECK(steps_within({1.5, 0.04}, 7.32911117144, 1e-5) == 2250);
}

TEST_CASE("the noise for a target gives it back, and falls as the target grows") {
  double before = kInfinity;
  for (const double epsilon : {0.1, 0.5, 1.0, 8.0, 50.0}) {
    const double sigma = noise_multiplier_for(epsilon, 1e-5, 0.02, 500);
    CAPTURE(epsilon);
    CHECK(epsilon_after(sigma, 0.02, 500) <= epsilon);
    CHECK(epsilon_after(sigma * (1 - 1e-5), 0.02, 500) > epsilon);
    CHECK(sigma < before);
    CHECK(steps_within({sigma, 0.02}, epsilon, 1e-5) == 500);
    before = sigma;
  }
  CHECK(std::abs(noise_multiplier_for(7.32911117143, 1e-5, 0.04, 2250) - 1.5) < 1e-5);
  CHECK_THROWS_AS(noise_multiplier_for(1e-4, 1e-9, 1, 1'000'000'000'000), Error);
}

TEST_CASE("privacy settings that promise nothing are refused") {
  const PrivacyOptions good{.unit = PrivacyUnit::example,
                            .clip_norm = 1,
                            .noise_multiplier = 1,
                            .sampling_rate = 0.01,
                            .batch = 32,
                            .epsilon = 8.0};
  CHECK_NOTHROW(check_privacy(good));
  const auto refused = [&](auto change) {
    PrivacyOptions bad = good;
    change(bad);
    CHECK_THROWS_AS(check_privacy(bad), Error);
  };
  refused([](auto& o) { o.clip_norm = 0; });
  refused([](auto& o) { o.clip_norm = kInfinity; });
  refused([](auto& o) { o.noise_multiplier = 0; });
  refused([](auto& o) { o.noise_multiplier = std::nan(""); });
  refused([](auto& o) { o.delta = 0; });
  refused([](auto& o) { o.delta = 1; });
  refused([](auto& o) { o.epsilon = 0; });
  refused([](auto& o) { o.epsilon = std::nan(""); });
  refused([](auto& o) { o.sampling_rate = 0; });
  refused([](auto& o) { o.sampling_rate = 1.5; });
  refused([](auto& o) { o.batch = kMostPrivateBatch + 1; });
  refused([](auto& o) { o.unit = PrivacyUnit::update; });
  refused([](auto& o) { o.epsilon = 0.01; });  // not even one step
  CHECK_THROWS_AS(parse_privacy_unit("user"), Error);
}

}  // namespace sotto::test::accountant_test
