// What figures of several seeds spread over. Plain values and pure functions; thread-safe.
#pragma once

#include <cmath>
#include <cstddef>
#include <vector>

namespace sotto::study {

/// Mean and extremes of several values. All are NaN where one of the values is, or there is none: a
/// mean over those that are left would hide the others.
struct Spread {
  double mean = 0;
  double low = 0;
  double high = 0;
  std::size_t count = 0;  ///< values that are not NaN

  /// Some have a value, and some have none.
  bool partial() const { return count > 0 && std::isnan(mean); }
};

/// The mean and the extremes of these values.
Spread spread_of(const std::vector<double>& values);

}  // namespace sotto::study
