// The result of `sotto compare` as one self-contained HTML page with curves. Not thread-safe.
#pragma once

#include <string>

#include "output.h"

namespace sotto::cli {

/// Loss and accuracy against rounds, bytes and time, with a table. `result` is the JSON of
/// `sotto compare` with at least one run.
std::string compare_page(const Json& result);

}  // namespace sotto::cli
