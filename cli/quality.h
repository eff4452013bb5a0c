// The figure beside the loss that says how good a model is: the accuracy of classes, or R² of a
// regression. What a point has, it is shown with. Pure functions; thread-safe.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "compare/repeated_run.h"
#include "output.h"

namespace sotto::cli {

/// What the figure is called, and how it is written.
struct Quality {
  const char* heading;  ///< "accuracy", "R²"
  const char* title;    ///< "Accuracy", "R²": at the beginning of a sentence
  const char* field;    ///< of JSON: "accuracy", "r2"
  const char* worst;    ///< of JSON: that of the worst node's own model
  const char* mean;     ///< of JSON: the mean of the nodes' own
  bool share;           ///< shown in percent
};

extern const Quality kAccuracy;
extern const Quality kR2;

/// The figure of an evaluation or a history's point; accuracy where it has neither.
template <typename Found>
const Quality& quality_at(const Found& found) {
  return std::isnan(found.accuracy) && !std::isnan(found.r2) ? kR2 : kAccuracy;
}
/// The figure of JSON that `add_quality` filled.
const Quality& quality_in(const Json& point);
/// The figure of runs of one task.
const Quality& quality_among(const std::vector<RepeatedRun>& runs);

/// "93.13 %", "0.8712"; "–" for a NaN.
std::string quality_text(const Quality& quality, double value);
/// quality_text over seeds, as spread_percent and spread_text.
std::string spread_quality(const RepeatedRun& run, const Quality& quality, const Metric& metric);

/// Adds accuracy, r2 and rmse; those that a task does not have become null.
template <typename Found>
void add_quality(const Found& found, Json& json) {
  json["accuracy"] = found.accuracy;
  json["r2"] = found.r2;
  json["rmse"] = found.rmse;
}

}  // namespace sotto::cli
