#include <sotto/study/quality.h>

#include <cmath>

#include <fmt/format.h>

#include <sotto/study/units.h>

namespace sotto::study {

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

std::string quality_text(const Quality& quality, double value) {
  constexpr double kFar = -100;  // of a run that diverges, which would have no end of digits
  if (quality.share || std::isnan(value)) {
    return percent(value);
  }
  return value > kFar ? fmt::format("{:.4f}", value) : fmt::format("{:.4g}", value);
}

}  // namespace sotto::study
