// How a file that tells of a run says that the run goes on without it. Pure functions; thread-safe.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include <fmt/format.h>

namespace sotto::cli {

/// Takes a warning of one line.
using Tell = std::function<void(const std::string& text)>;

/// "--trace: trace.json: No space left on device; the run goes on without"
inline std::string lost_file(std::string_view option, std::string_view path, std::string_view why) {
  return fmt::format("{}: {}: {}; the run goes on without", option, path, why);
}

}  // namespace sotto::cli
