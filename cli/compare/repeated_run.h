// One run of a comparison, repeated with several seeds, and what its results spread over. Pure
// functions and plain values; thread-safe.
#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <sotto/base/ids.h>

#include "output.h"

namespace sotto::cli {

/// Why a run has no result, where it was Ctrl-C.
inline constexpr const char* kInterrupted = "interrupted";
inline constexpr const char* kNotRun = "not run";

/// A run that failed, or was not run.
struct FailedRun {
  std::uint64_t seed = 0;
  std::string why;
};

/// A run of `sotto compare`.
struct RepeatedRun {
  std::string words;
  Round rounds = 0;
  std::uint64_t seeds = 1;               ///< as many as were asked for
  std::vector<Json> results = {};        ///< of `train`, by seed, of those that finished
  std::vector<FailedRun> failures = {};  ///< the others

  bool several() const { return seeds > 1; }
};

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
Spread spread_of(const RepeatedRun& run, const Metric& metric);

/// "loss", "accuracy", "r2" or "consensus_distance" of the final model.
Metric final_metric(const std::string& field);
/// Bytes that a node sent, the mean over nodes.
double bytes_per_node(const Json& result);
/// Seconds.
double wall_time(const Json& result);

/// The value of a field; NaN unless it is a number.
double number_or_nan(const Json& value);

/// "0.2128", or with several seeds "0.2128 (0.2094 – 0.2201)"; "–" where no result has the metric,
/// "– (2 of 3)" where only so many have it.
std::string spread_text(const RepeatedRun& run, const Metric& metric);
/// "93.18 %", "93.18 % (92.90 – 93.55)"
std::string spread_percent(const RepeatedRun& run, const Metric& metric);

}  // namespace sotto::cli
