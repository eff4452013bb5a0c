// What many measurements or predictions come to. Pure functions; thread-safe.
#pragma once

#include <span>

#include <sotto/console/output.h>

#include "quantile.h"

namespace sotto::bench {

/// Where repeated measurements lie, in their unit; all NaN for no values.
struct MedianSpread {
  double median = 0;
  double low = 0;   ///< the smallest
  double high = 0;  ///< the largest
};
/// The median and the range of the values.
MedianSpread spread_of(std::span<const double> values);
/// {"median", "min", "max"}; null where there are none.
Json spread_json(const MedianSpread& spread);

/// Kendall's τ-b of two rankings of the same things: 1 when all pairs are in the same order, −1
/// when all are in the opposite one. Ties count as usual (Kendall 1945); NaN when one of the two is
/// all ties. Requires equal sizes.
double kendall_tau(std::span<const double> a, std::span<const double> b);

}  // namespace sotto::bench
