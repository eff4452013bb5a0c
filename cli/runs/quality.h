// The figure beside the loss that says how good a model is, over runs and seeds. Pure functions;
// thread-safe.
#pragma once

#include <string>
#include <vector>

#include <sotto/study/quality.h>

#include "repeated_run.h"

namespace sotto::cli {

/// The figure of runs of one task.
const study::Quality& quality_among(const std::vector<study::RepeatedRun>& runs);

/// The field of a history's points that holds the figure.
double HistoryPoint::*field_of(const study::Quality& quality);

/// The figure over seeds, by spread_percent where it is a share, else by spread_text.
std::string spread_quality(const study::RepeatedRun& run, const study::Quality& quality,
                           const Metric& metric);

}  // namespace sotto::cli
