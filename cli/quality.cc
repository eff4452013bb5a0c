#include "quality.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "units.h"

namespace sotto::cli {

const Quality kAccuracy = {.heading = "accuracy",
                           .title = "Accuracy",
                           .field = "accuracy",
                           .worst = "accuracy_worst_node",
                           .mean = "accuracy_mean_node",
                           .share = true};
const Quality kR2 = {.heading = "R²",
                     .title = "R²",
                     .field = "r2",
                     .worst = "r2_worst_node",
                     .mean = "r2_mean_node",
                     .share = false};

const Quality& quality_in(const Json& point) {
  return point.is_object() && std::isfinite(number_or_nan(point.value("r2", Json()))) ? kR2
                                                                                      : kAccuracy;
}

const Quality& quality_among(const std::vector<RepeatedRun>& runs) {
  const bool regression = std::any_of(runs.begin(), runs.end(), [](const RepeatedRun& run) {
    return std::any_of(run.results.begin(), run.results.end(), [](const Json& result) {
      return &quality_in(result.value("final", Json())) == &kR2;
    });
  });
  return regression ? kR2 : kAccuracy;
}

std::string quality_text(const Quality& quality, double value) {
  constexpr double kFar = -100;  // of a run that diverges, which would have no end of digits
  if (quality.share || std::isnan(value)) {
    return percent(value);
  }
  return value > kFar ? fmt::format("{:.4f}", value) : fmt::format("{:.4g}", value);
}

std::string spread_quality(const RepeatedRun& run, const Quality& quality, const Metric& metric) {
  return quality.share ? spread_percent(run, metric) : spread_text(run, metric);
}

}  // namespace sotto::cli
