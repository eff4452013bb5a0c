// The JSON type of everything that sotto writes. Needs the headers of nlohmann's library, which
// `sotto::base` does not link.
#pragma once

#include <nlohmann/json.hpp>

namespace sotto {

/// Keeps the order in which fields were written. `json_text` writes it and `parse_json` reads it
/// (json_text.h).
using Json = nlohmann::ordered_json;

}  // namespace sotto
