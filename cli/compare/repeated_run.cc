#include "repeated_run.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <numeric>

#include <fmt/format.h>

#include <sotto/study/units.h>

namespace sotto::cli {
namespace {

/// In place of a mean.
std::string absent(const study::RepeatedRun& run, const Spread& spread) {
  return spread.partial() ? fmt::format("– ({} of {})", spread.count, run.results.size()) : "–";
}

}  // namespace

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

Spread spread_of(const study::RepeatedRun& run, const Metric& metric) {
  std::vector<double> values;
  std::transform(run.results.begin(), run.results.end(), std::back_inserter(values), metric);
  return spread_of(values);
}

Metric final_metric(const std::string& field) {
  return [field](const Json& result) {
    return study::number_or_nan(result.at("final").value(field, Json()));
  };
}

double bytes_per_node(const Json& result) {
  const Json& sent = result.at("bytes_sent_per_node");
  double total = 0;
  for (const Json& bytes : sent) {
    total += bytes.get<double>();
  }
  return sent.empty() ? 0 : total / static_cast<double>(sent.size());
}

double wall_time(const Json& result) { return result.at("time").at("wall_s").get<double>(); }

std::string spread_text(const study::RepeatedRun& run, const Metric& metric) {
  const Spread spread = spread_of(run, metric);
  if (std::isnan(spread.mean)) {
    return absent(run, spread);
  }
  return run.several()
             ? fmt::format("{:.4g} ({:.4g} – {:.4g})", spread.mean, spread.low, spread.high)
             : fmt::format("{:.4g}", spread.mean);
}

std::string spread_percent(const study::RepeatedRun& run, const Metric& metric) {
  const Spread spread = spread_of(run, metric);
  if (std::isnan(spread.mean)) {
    return absent(run, spread);
  }
  return run.several() ? fmt::format("{} ({:.2f} – {:.2f})", study::percent(spread.mean),
                                     100 * spread.low, 100 * spread.high)
                       : study::percent(spread.mean);
}

}  // namespace sotto::cli
