// The result of `sotto compare` as one self-contained HTML page with curves. Not thread-safe.
#pragma once

#include <string>

#include "output.h"

namespace sotto::cli {

/// Draws loss and accuracy against rounds, bytes and time, with a table. `result` is the JSON of
/// `sotto compare`. Throws std::runtime_error when `path` cannot be written.
void write_compare_page(const std::string& path, const Json& result);

}  // namespace sotto::cli
