#include "quality.h"

#include <algorithm>

#include <fmt/format.h>

#include <sotto/study/units.h>

namespace sotto::cli {

const study::Quality& quality_among(const std::vector<study::RepeatedRun>& runs) {
  const bool regression = std::any_of(runs.begin(), runs.end(), [](const study::RepeatedRun& run) {
    return std::any_of(run.results.begin(), run.results.end(), [](const Json& result) {
      return &study::quality_in(result.value("final", Json())) == &study::kR2;
    });
  });
  return regression ? study::kR2 : study::kAccuracy;
}

std::string spread_quality(const study::RepeatedRun& run, const study::Quality& quality,
                           const Metric& metric) {
  return quality.share ? spread_percent(run, metric) : spread_text(run, metric);
}

}  // namespace sotto::cli
