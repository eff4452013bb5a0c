// What readers of text share.
#pragma once

#include <string_view>

namespace sotto {

/// `text` without the blanks at its ends: spaces, tabs, and the carriage return before a newline.
inline std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r";
  const std::size_t first = text.find_first_not_of(kBlank);
  return first == std::string_view::npos
             ? std::string_view{}
             : text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

}  // namespace sotto
