#include "repeated_run.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

#include <fmt/format.h>

#include <sotto/study/units.h>

namespace sotto::cli {
namespace {

/// In place of a mean.
std::string absent(const study::Spread& spread, std::size_t all) {
  return spread.partial() ? fmt::format("– ({} of {})", spread.count, all) : "–";
}

}  // namespace

study::Spread spread_of(const study::RepeatedRun& run, const Metric& metric) {
  std::vector<double> values;
  std::transform(run.results.begin(), run.results.end(), std::back_inserter(values), metric);
  return study::spread_of(values);
}

Metric final_metric(double HistoryPoint::*figure) {
  return [figure](const study::FinishedRun& result) {
    return result.final ? *result.final.*figure : std::numeric_limits<double>::quiet_NaN();
  };
}

std::string spread_text(const std::vector<double>& values,
                        const std::function<std::string(double)>& format) {
  const study::Spread spread = study::spread_of(values);
  if (std::isnan(spread.mean)) {
    return absent(spread, values.size());
  }
  const bool differ = format(spread.low) != format(spread.high);
  return differ ? fmt::format("{} ({} – {})", format(spread.mean), format(spread.low),
                              format(spread.high))
                : format(spread.mean);
}

std::string spread_text(const study::RepeatedRun& run, const Metric& metric) {
  const study::Spread spread = spread_of(run, metric);
  if (std::isnan(spread.mean)) {
    return absent(spread, run.results.size());
  }
  return run.several()
             ? fmt::format("{:.4g} ({:.4g} – {:.4g})", spread.mean, spread.low, spread.high)
             : fmt::format("{:.4g}", spread.mean);
}

std::string spread_percent(const study::RepeatedRun& run, const Metric& metric) {
  const study::Spread spread = spread_of(run, metric);
  if (std::isnan(spread.mean)) {
    return absent(spread, run.results.size());
  }
  return run.several() ? fmt::format("{} ({:.2f} – {:.2f})", study::percent(spread.mean),
                                     100 * spread.low, 100 * spread.high)
                       : study::percent(spread.mean);
}

std::string shown_name(const study::RepeatedRun& run) {
  return run.failures.empty() || run.results.empty()
             ? run.words
             : fmt::format("{} ({} of {})", run.words, run.results.size(), run.seeds);
}

std::vector<std::string> failed_row(const study::RepeatedRun& run, std::size_t columns) {
  const study::FailedRun& first = run.failures.front();
  std::vector<std::string> row(columns, "–");
  row[0] = run.words;
  row[1] = first.stopped ? first.why : "failed";
  return row;
}

}  // namespace sotto::cli
