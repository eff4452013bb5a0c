#include <sotto/optim/privacy/accountant.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include <sotto/base/check.h>
#include <sotto/base/error.h>
#include <sotto/optim/privacy/gaussian_rdp.h>

namespace sotto {
namespace {

constexpr auto kOrders = [] {
  std::array<double, 99 + 52 + 4> orders{};
  std::size_t at = 0;
  for (int tenths = 11; tenths <= 109; ++tenths) {
    orders[at++] = tenths / 10.0;
  }
  for (int order = 12; order <= 63; ++order) {
    orders[at++] = order;
  }
  for (const double order : {128.0, 256.0, 512.0, 1024.0}) {
    orders[at++] = order;
  }
  return orders;
}();

double improved(double rdp, double order, double delta) {
  // δ ≤ √(1 − exp(−KL)), and the Kullback–Leibler divergence is at most ε_α.
  if (delta * delta + std::expm1(-rdp) > 0) {
    return 0;
  }
  return std::max(0.0, rdp + std::log1p(-1 / order) - std::log(delta * order) / (order - 1));
}

double classic(double rdp, double order, double delta) {
  return rdp == 0 ? 0 : rdp - std::log(delta) / (order - 1);
}

/// The least ε over all orders.
double convert(const std::vector<double>& rdp, double delta, double (*of)(double, double, double)) {
  check(delta > 0 && delta < 1, "0 < δ < 1");
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t k = 0; k < rdp.size(); ++k) {
    least = std::min(least, of(rdp[k], kOrders[k], delta));
  }
  return least;
}

double cost(const GaussianStep& step, std::uint64_t steps, double delta,
            std::span<const GaussianStep> before) {
  PrivacyAccountant accountant;
  for (const GaussianStep& earlier : before) {
    accountant.add(earlier, 1);
  }
  accountant.add(step, steps);
  return accountant.epsilon(delta);
}

}  // namespace

PrivacyAccountant::PrivacyAccountant() : rdp_(kOrders.size(), 0.0) {}

void PrivacyAccountant::add(const GaussianStep& step, std::uint64_t steps) {
  if (steps == 0) {
    return;
  }
  for (std::size_t k = 0; k < rdp_.size(); ++k) {
    rdp_[k] += static_cast<double>(steps) *
               subsampled_gaussian_rdp(step.noise_multiplier, step.sampling_rate, kOrders[k]);
  }
}

double PrivacyAccountant::epsilon(double delta) const { return convert(rdp_, delta, improved); }

double PrivacyAccountant::classic_epsilon(double delta) const {
  return convert(rdp_, delta, classic);
}

std::uint64_t steps_within(const GaussianStep& step, double epsilon, double delta,
                           std::span<const GaussianStep> before) {
  std::vector<double> once;
  std::vector<double> first;
  once.reserve(kOrders.size());
  first.reserve(kOrders.size());
  for (const double order : kOrders) {
    once.push_back(subsampled_gaussian_rdp(step.noise_multiplier, step.sampling_rate, order));
    double sum = 0;
    for (const GaussianStep& earlier : before) {
      sum += subsampled_gaussian_rdp(earlier.noise_multiplier, earlier.sampling_rate, order);
    }
    first.push_back(sum);
  }
  std::vector<double> rdp(once.size());
  // As PrivacyAccountant computes it, so that the answer is exact.
  const auto fits = [&](std::uint64_t steps) {
    for (std::size_t k = 0; k < once.size(); ++k) {
      rdp[k] = first[k] + static_cast<double>(steps) * once[k];
    }
    return convert(rdp, delta, improved) <= epsilon;
  };
  if (fits(kUnlimitedSteps)) {
    return kUnlimitedSteps;
  }
  std::uint64_t within = 0;
  std::uint64_t beyond = kUnlimitedSteps;
  while (beyond - within > 1) {
    const std::uint64_t middle = within + (beyond - within) / 2;
    (fits(middle) ? within : beyond) = middle;
  }
  return within;
}

double noise_multiplier_for(double epsilon, double delta, double sampling_rate, std::uint64_t steps,
                            std::span<const GaussianStep> before) {
  constexpr double kMost = 1e6;
  constexpr double kAccuracy = 1e-6;
  double enough = 1;
  while (cost({enough, sampling_rate}, steps, delta, before) > epsilon) {
    enough *= 2;
    if (enough > kMost) {
      refuse("privacy_epsilon", fmt::to_string(epsilon),
             fmt::format("no noise makes {} steps so private at delta {}; take a larger epsilon or "
                         "fewer rounds",
                         steps, delta));
    }
  }
  double too_little = 0;
  while (enough - too_little > kAccuracy * enough) {
    const double middle = (enough + too_little) / 2;
    (cost({middle, sampling_rate}, steps, delta, before) > epsilon ? too_little : enough) = middle;
  }
  return enough;
}

}  // namespace sotto
