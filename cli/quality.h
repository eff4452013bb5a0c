// The figure beside the loss that says how good a model is, over runs and seeds. Pure functions;
// thread-safe.
#pragma once

#include <string>
#include <vector>

#include <sotto/study/quality.h>

#include "compare/repeated_run.h"

namespace sotto::cli {

/// The figure of runs of one task.
const study::Quality& quality_among(const std::vector<study::RepeatedRun>& runs);

/// Where points of a history have the figure.
double HistoryPoint::*field_of(const study::Quality& quality);

/// quality_text over seeds, as spread_percent and spread_text.
std::string spread_quality(const study::RepeatedRun& run, const study::Quality& quality,
                           const Metric& metric);

}  // namespace sotto::cli
