#include <sotto/study/json/figures.h>

#include <cmath>
#include <limits>

namespace sotto::study {

double number_or_nan(const Json& value) {
  return value.is_number() ? value.get<double>() : std::numeric_limits<double>::quiet_NaN();
}

const Quality& quality_in(const Json& point) {
  return point.is_object() && std::isfinite(number_or_nan(point.value("r2", Json()))) ? kR2
                                                                                      : kAccuracy;
}

}  // namespace sotto::study
