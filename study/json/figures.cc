#include <sotto/study/json/figures.h>

#include <cmath>
#include <limits>

namespace sotto::study {

Json privacy_json(const PrivacySpent& spent) {
  const bool limited = spent.left != kUnlimitedSteps;
  return {{"epsilon", spent.epsilon},
          {"delta", spent.delta},
          {"steps", spent.steps},
          {"steps_left", limited ? Json(spent.left) : Json()}};
}

double number_or_nan(const Json& value) {
  return value.is_number() ? value.get<double>() : std::numeric_limits<double>::quiet_NaN();
}

const Quality& quality_in(const Json& point) {
  return point.is_object() && std::isfinite(number_or_nan(point.value("r2", Json()))) ? kR2
                                                                                      : kAccuracy;
}

}  // namespace sotto::study
