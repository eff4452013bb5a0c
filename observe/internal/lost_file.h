// The message for a file that can no longer be written. A pure function; thread-safe.
#pragma once

#include <string>
#include <string_view>

#include <fmt/format.h>

#include <sotto/base/setting_text.h>

namespace sotto::internal {

/// "trace: trace.json: No space left on device; the run goes on without"
inline SettingText lost_file(std::string_view setting, std::string_view path,
                             std::string_view why) {
  return mention(setting) + fmt::format(": {}: {}; the run goes on without", path, why);
}

}  // namespace sotto::internal
