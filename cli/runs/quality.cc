#include "quality.h"

#include <algorithm>

#include <fmt/format.h>

#include <sotto/study/units.h>

namespace sotto::cli {

const study::Quality& quality_among(const std::vector<study::RepeatedRun>& runs) {
  const bool regression = std::any_of(runs.begin(), runs.end(), [](const study::RepeatedRun& run) {
    return std::any_of(run.results.begin(), run.results.end(),
                       [](const study::FinishedRun& result) {
                         return result.final && &study::quality_at(*result.final) == &study::kR2;
                       });
  });
  return regression ? study::kR2 : study::kAccuracy;
}

double HistoryPoint::*field_of(const study::Quality& quality) {
  return quality.share ? &HistoryPoint::accuracy : &HistoryPoint::r2;
}

std::string spread_quality(const study::RepeatedRun& run, const study::Quality& quality,
                           const Metric& metric) {
  return quality.share ? spread_percent(run, metric) : spread_text(run, metric);
}

}  // namespace sotto::cli
