#include "repeated_run.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "units.h"

namespace sotto::cli {

Spread spread_of(const RepeatedRun& run, const Metric& metric) {
  Spread spread = {0, std::numeric_limits<double>::infinity(),
                   -std::numeric_limits<double>::infinity()};
  std::size_t count = 0;
  for (const Json& result : run.results) {
    const double value = metric(result);
    if (std::isnan(value)) {
      continue;
    }
    ++count;
    spread.mean += value;
    spread.low = std::min(spread.low, value);
    spread.high = std::max(spread.high, value);
  }
  if (count == 0) {
    const double nan = std::numeric_limits<double>::quiet_NaN();
    return {nan, nan, nan};
  }
  spread.mean /= static_cast<double>(count);
  return spread;
}

Metric final_metric(const std::string& field) {
  return [field](const Json& result) { return number_or_nan(result.at("final").at(field)); };
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

double number_or_nan(const Json& value) {
  return value.is_number() ? value.get<double>() : std::numeric_limits<double>::quiet_NaN();
}

std::string spread_text(const RepeatedRun& run, const Metric& metric) {
  const Spread spread = spread_of(run, metric);
  if (std::isnan(spread.mean)) {
    return "–";
  }
  return run.several()
             ? fmt::format("{:.4g} ({:.4g} – {:.4g})", spread.mean, spread.low, spread.high)
             : fmt::format("{:.4g}", spread.mean);
}

std::string spread_percent(const RepeatedRun& run, const Metric& metric) {
  const Spread spread = spread_of(run, metric);
  return run.several() && !std::isnan(spread.mean)
             ? fmt::format("{} ({:.2f} – {:.2f})", percent(spread.mean), 100 * spread.low,
                           100 * spread.high)
             : percent(spread.mean);
}

}  // namespace sotto::cli
