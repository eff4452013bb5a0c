// JSON as the files of a run have it. Pure functions; thread-safe.
#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace sotto::internal {

/// Keeps the order in which fields were written.
using Json = nlohmann::ordered_json;

/// On one line. What is no number becomes null, as JSON has neither NaN nor infinities, and what is
/// no UTF-8 is replaced.
inline std::string dumped(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

/// The settings of a run, which are given as a JSON object; nothing: an empty one.
inline Json parsed_config(std::string_view config) {
  return config.empty() ? Json::object() : Json::parse(config);
}

}  // namespace sotto::internal
