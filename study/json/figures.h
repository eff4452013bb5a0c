// Figures that several results have, to JSON and from it. Pure functions; thread-safe.
#pragma once

#include <sotto/base/json.h>
#include <sotto/study/quality.h>

namespace sotto::study {

/// The value of an optional, or null.
Json or_null(const auto& value) { return value ? Json(*value) : Json(); }

/// Adds accuracy, r2 and rmse; those that a task does not have become null.
template <typename Found>
void add_quality(const Found& found, Json& json) {
  json["accuracy"] = found.accuracy;
  json["r2"] = found.r2;
  json["rmse"] = found.rmse;
}

/// The value of a field; NaN unless it is a number.
double number_or_nan(const Json& value);
/// The figure of JSON that `add_quality` filled.
const Quality& quality_in(const Json& point);

}  // namespace sotto::study
