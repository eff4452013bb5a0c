// One run of a comparison, repeated with several seeds, and what its results spread over. Pure
// functions and plain values; thread-safe.
#pragma once

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include <sotto/console/output.h>
#include <sotto/study/json/comparison.h>

namespace sotto::cli {

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

Spread spread_of(const std::vector<double>& values);

/// What a result is asked for; NaN: it has none.
using Metric = std::function<double(const Json& result)>;

/// Over all results.
Spread spread_of(const study::RepeatedRun& run, const Metric& metric);

/// "loss", "accuracy", "r2" or "consensus_distance" of the final model.
Metric final_metric(const std::string& field);
/// Bytes that a node sent, the mean over nodes.
double bytes_per_node(const Json& result);
/// Seconds.
double wall_time(const Json& result);

/// "0.2128", or with several seeds "0.2128 (0.2094 – 0.2201)"; "–" where no result has the metric,
/// "– (2 of 3)" where only so many have it.
std::string spread_text(const study::RepeatedRun& run, const Metric& metric);
/// "93.18 %", "93.18 % (92.90 – 93.55)"
std::string spread_percent(const study::RepeatedRun& run, const Metric& metric);

}  // namespace sotto::cli
