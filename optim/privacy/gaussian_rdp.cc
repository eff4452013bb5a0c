#include <sotto/optim/privacy/gaussian_rdp.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include <sotto/base/check.h>

namespace sotto {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
/// Less noise than this counts as none: 1/σ² would overflow.
constexpr double kNoNoise = 1e-100;

/// log(exp(a) + exp(b))
double log_add(double a, double b) {
  const double larger = std::max(a, b);
  return larger == -kInfinity ? larger : larger + std::log1p(std::exp(-std::abs(a - b)));
}

/// log(exp(a) − exp(b)); requires a ≥ b.
double log_subtract(double a, double b) {
  return b == -kInfinity ? a : a + std::log(-std::expm1(std::min(b - a, 0.0)));
}

/// log(exp(x) − 1) for x > 0
double log_expm1(double x) {
  return x > 30 ? x + std::log1p(-std::exp(-x)) : std::log(std::expm1(x));
}

/// A sum of terms of either sign, kept by logarithms.
class LogSum {
 public:
  void add(double log_term, bool positive) {
    double& part = positive ? positive_ : negative_;
    part = log_add(part, log_term);
  }
  /// The logarithm of a sum that is positive.
  double log() const { return log_subtract(positive_, negative_); }

 private:
  double positive_ = -kInfinity;
  double negative_ = -kInfinity;
};

/// log A_α for a whole α. Since the binomial terms sum to 1, A − 1 is a sum of positive terms, and
/// nothing cancels: A − 1 = Σ_{k ≥ 2} C(α, k) (1 − q)^{α − k} q^k (exp((k² − k) / 2σ²) − 1).
double log_a_whole(double sigma, double q, double alpha) {
  double log_binomial = std::log(alpha);  // of C(α, 1)
  double log_excess = -kInfinity;
  for (int term = 2; term <= alpha; ++term) {
    const double k = term;
    log_binomial += std::log((alpha - k + 1) / k);
    const double exponent = (k * k - k) / (2 * sigma * sigma);
    log_excess = log_add(log_excess, log_binomial + k * std::log(q) + (alpha - k) * std::log1p(-q) +
                                         log_expm1(exponent));
  }
  return log_add(0, log_excess);
}

/// log A_α for any α: the two series of the paper, one for each side of the point z0 where the
/// mixture's parts weigh the same. Their terms fall at least as i^−(α + 2).
double log_a_fractional(double sigma, double q, double alpha) {
  constexpr double kNegligible = -30;
  constexpr int kMostTerms = 100'000;
  const double z0 = sigma * sigma * std::log(1 / q - 1) + 0.5;
  const double variance2 = 2 * sigma * sigma;
  const double width = std::numbers::sqrt2 * sigma;
  const double log_q = std::log(q);
  const double log_rest = std::log1p(-q);
  LogSum sum;
  double log_binomial = -std::numbers::ln2;  // with the ½ of erfc / 2
  bool positive = true;
  for (int term = 0; term < kMostTerms; ++term) {
    const double i = term;
    const double j = alpha - i;
    const double below = log_binomial + i * log_q + j * log_rest + (i * i - i) / variance2 +
                         log_erfc((i - z0) / width);
    const double above = log_binomial + j * log_q + i * log_rest + (j * j - j) / variance2 +
                         log_erfc((z0 - j) / width);
    sum.add(below, positive);
    sum.add(above, positive);
    if (i > alpha && std::max(below, above) < kNegligible) {
      break;
    }
    log_binomial += std::log(std::abs(j) / (i + 1));
    positive = positive == (j > 0);
  }
  return sum.log();
}

}  // namespace

double log_erfc(double x) {
  if (x < 25) {
    return std::log(std::erfc(x));
  }
  // erfc(x) = exp(−x²) / (x √π) × (1 − 1/2x² + 3/4x⁴ − …)
  const double r = 1 / (x * x);
  const double series = 1 + r * (-0.5 + r * (0.75 + r * (-1.875 + r * 6.5625)));
  return -x * x - std::log(x) - 0.5 * std::log(std::numbers::pi) + std::log(series);
}

double subsampled_gaussian_rdp(double noise_multiplier, double sampling_rate, double order) {
  check(noise_multiplier >= 0 && sampling_rate >= 0 && sampling_rate <= 1 && order > 1,
        "σ ≥ 0, 0 ≤ q ≤ 1 and an order above 1");
  if (sampling_rate == 0) {
    return 0;
  }
  if (noise_multiplier < kNoNoise) {
    return kInfinity;
  }
  if (sampling_rate == 1) {
    return order / (2 * noise_multiplier * noise_multiplier);
  }
  const double log_a = order == std::floor(order)
                           ? log_a_whole(noise_multiplier, sampling_rate, order)
                           : log_a_fractional(noise_multiplier, sampling_rate, order);
  return std::max(log_a, 0.0) / (order - 1);
}

}  // namespace sotto
