#include <sotto/study/spread.h>

#include <algorithm>
#include <limits>
#include <numeric>

namespace sotto::study {

Spread spread_of(const std::vector<double>& values) {
  constexpr double kNoSpread = std::numeric_limits<double>::quiet_NaN();
  const auto missing = static_cast<std::size_t>(
      std::count_if(values.begin(), values.end(), [](double value) { return std::isnan(value); }));
  if (values.empty() || missing > 0) {
    return {kNoSpread, kNoSpread, kNoSpread, values.size() - missing};
  }
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  const double sum = std::accumulate(values.begin(), values.end(), 0.0);
  return {sum / static_cast<double>(values.size()), *low, *high, values.size()};
}

}  // namespace sotto::study
