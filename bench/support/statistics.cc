#include "statistics.h"

#include <cmath>

#include <sotto/base/check.h>

namespace sotto::bench {

MedianSpread spread_of(std::span<const double> values) {
  return {.median = quantile(values, 0.5), .low = quantile(values, 0), .high = quantile(values, 1)};
}

Json spread_json(const MedianSpread& spread) {
  if (!std::isfinite(spread.median)) {
    return {};
  }
  return {{"median", spread.median}, {"min", spread.low}, {"max", spread.high}};
}

double kendall_tau(std::span<const double> a, std::span<const double> b) {
  check(a.size() == b.size(), "rankings are of the same things");
  double agreement = 0;
  double untied_a = 0;
  double untied_b = 0;
  const auto order = [](double x, double y) { return x < y ? -1 : (x > y ? 1 : 0); };
  for (std::size_t i = 0; i < a.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      const int in_a = order(a[i], a[j]);
      const int in_b = order(b[i], b[j]);
      agreement += in_a * in_b;
      untied_a += in_a != 0 ? 1 : 0;
      untied_b += in_b != 0 ? 1 : 0;
    }
  }
  return agreement / std::sqrt(untied_a * untied_b);
}

}  // namespace sotto::bench
