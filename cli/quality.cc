#include "quality.h"

#include <algorithm>

#include <fmt/format.h>

#include <sotto/study/units.h>

#include "study.h"

namespace sotto::cli {

const Quality& quality_among(const std::vector<RepeatedRun>& runs) {
  const bool regression = std::any_of(runs.begin(), runs.end(), [](const RepeatedRun& run) {
    return std::any_of(run.results.begin(), run.results.end(), [](const Json& result) {
      return &quality_in(result.value("final", Json())) == &kR2;
    });
  });
  return regression ? kR2 : kAccuracy;
}

std::string spread_quality(const RepeatedRun& run, const Quality& quality, const Metric& metric) {
  return quality.share ? spread_percent(run, metric) : spread_text(run, metric);
}

}  // namespace sotto::cli
