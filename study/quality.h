// The figure beside the loss that says how good a model is: the accuracy of classes, or R² of a
// regression. What a point has, it is shown with. Pure functions; thread-safe.
#pragma once

#include <cmath>
#include <string>

namespace sotto::study {

/// The name and the format of the figure.
struct Quality {
  const char* heading;  ///< "accuracy", "R²"
  const char* title;    ///< "Accuracy", "R²": at the beginning of a sentence
  const char* field;    ///< key in JSON: "accuracy", "r2"
  const char* worst;    ///< key in JSON for the worst node's own model
  const char* mean;     ///< key in JSON for the mean over the nodes' own models
  bool share;           ///< the figure is a share, shown in percent
};

/// The share of a test set that is right.
extern const Quality kAccuracy;
/// R² of a regression.
extern const Quality kR2;

/// The figure of an evaluation or a history's point; accuracy where it has neither.
template <typename Found>
const Quality& quality_at(const Found& found) {
  return std::isnan(found.accuracy) && !std::isnan(found.r2) ? kR2 : kAccuracy;
}

/// "93.13 %", "0.8712"; "–" for a NaN.
std::string quality_text(const Quality& quality, double value);

}  // namespace sotto::study
