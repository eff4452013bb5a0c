// The words for a file that can no longer be written. A pure function; thread-safe.
#pragma once

#include <string>
#include <string_view>

#include <fmt/format.h>

namespace sotto::internal {

/// "--trace: trace.json: No space left on device; the run goes on without"
inline std::string lost_file(std::string_view option, std::string_view path, std::string_view why) {
  return fmt::format("{}: {}: {}; the run goes on without", option, path, why);
}

}  // namespace sotto::internal
