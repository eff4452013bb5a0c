// One run of a comparison, repeated with several seeds, and what its results spread over. Pure
// functions and plain values; thread-safe.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <sotto/study/comparison/repeated_run.h>
#include <sotto/study/spread.h>

namespace sotto::cli {

/// A figure of a result; NaN where the result has none.
using Metric = std::function<double(const study::FinishedRun& result)>;

/// The spread of the metric over all results.
study::Spread spread_of(const study::RepeatedRun& run, const Metric& metric);

/// The loss, the accuracy, R² or the consensus distance of the final model.
Metric final_metric(double HistoryPoint::*figure);

/// The mean in `format`, and where values differ the lowest and the highest: "12 s (11 s – 14 s)";
/// "–" where none is a number, "– (2 of 3)" where only so many are.
std::string spread_text(const std::vector<double>& values,
                        const std::function<std::string(double)>& format);

/// "0.2128", or with several seeds "0.2128 (0.2094 – 0.2201)"; "–" where no result has the metric,
/// "– (2 of 3)" where only so many have it.
std::string spread_text(const study::RepeatedRun& run, const Metric& metric);
/// "93.18 %", "93.18 % (92.90 – 93.55)"
std::string spread_percent(const study::RepeatedRun& run, const Metric& metric);

/// How tables call a run: of one that failed with some seeds it says only how many are left.
std::string shown_name(const study::RepeatedRun& run);
/// The row of a run that has no result, with so many columns. Requires a failure.
std::vector<std::string> failed_row(const study::RepeatedRun& run, std::size_t columns);

}  // namespace sotto::cli
