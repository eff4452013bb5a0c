// JSON that keeps the order in which fields were written, and figures that several results have.
#pragma once

#include <nlohmann/json.hpp>

namespace sotto::study {

using Json = nlohmann::ordered_json;

/// Adds accuracy, r2 and rmse; those that a task does not have become null.
template <typename Found>
void add_quality(const Found& found, Json& json) {
  json["accuracy"] = found.accuracy;
  json["r2"] = found.r2;
  json["rmse"] = found.rmse;
}

}  // namespace sotto::study
