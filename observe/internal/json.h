// JSON as the files of a run have it; json_text writes it. Pure functions; thread-safe.
#pragma once

#include <string>
#include <string_view>

#include <sotto/base/json.h>
#include <sotto/base/json_text.h>

namespace sotto::internal {

/// The settings of a run, which are given as a JSON object; nothing: an empty one.
inline Json parsed_config(std::string_view config) {
  return config.empty() ? Json::object() : Json::parse(config);
}

}  // namespace sotto::internal
