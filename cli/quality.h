// The figure beside the loss that says how good a model is, in JSON and over seeds. Pure functions;
// thread-safe.
#pragma once

#include <string>
#include <vector>

#include <sotto/console/output.h>
#include <sotto/study/json/figures.h>
#include <sotto/study/quality.h>

#include "compare/repeated_run.h"

namespace sotto::cli {

/// The figure of runs of one task.
const study::Quality& quality_among(const std::vector<study::RepeatedRun>& runs);

/// quality_text over seeds, as spread_percent and spread_text.
std::string spread_quality(const study::RepeatedRun& run, const study::Quality& quality,
                           const Metric& metric);

}  // namespace sotto::cli
