#include <sotto/base/text.h>

#include <cstdint>
#include <iterator>

#include <fmt/format.h>

#include <sotto/base/number.h>

namespace sotto {
namespace {

/// The length of the UTF-8 character at the start of `text`; 0 when there is none that is valid and
/// can be shown (Unicode 15, table 3-7), in XML too.
std::size_t shown_character(std::string_view text) {
  const auto byte = [&](std::size_t at) {
    return at < text.size() ? static_cast<std::uint8_t>(text[at]) : std::uint8_t{0};
  };
  const auto between = [&](std::size_t at, int low, int high) {
    return byte(at) >= low && byte(at) <= high;
  };
  const auto continues = [&](std::size_t at) { return between(at, 0x80, 0xBF); };
  const std::uint8_t lead = byte(0);
  if (lead < 0x80) {
    return between(0, 0x20, 0x7E) || lead == '\n' || lead == '\t' ? 1 : 0;
  }
  if (between(0, 0xC2, 0xDF)) {
    // U+0080 … U+009F are control characters.
    return continues(1) && (lead != 0xC2 || byte(1) >= 0xA0) ? 2 : 0;
  }
  if (between(0, 0xE0, 0xEF)) {
    const bool second = between(1, lead == 0xE0 ? 0xA0 : 0x80, lead == 0xED ? 0x9F : 0xBF);
    // U+FFFE and U+FFFF are no characters.
    const bool none = lead == 0xEF && byte(1) == 0xBF && byte(2) >= 0xBE;
    // U+202A … U+202E and U+2066 … U+2069 turn round what stands behind them.
    const bool turns = lead == 0xE2 && ((byte(1) == 0x80 && between(2, 0xAA, 0xAE)) ||
                                        (byte(1) == 0x81 && between(2, 0xA6, 0xA9)));
    return second && continues(2) && !none && !turns ? 3 : 0;
  }
  if (between(0, 0xF0, 0xF4)) {
    const bool second = between(1, lead == 0xF0 ? 0x90 : 0x80, lead == 0xF4 ? 0x8F : 0xBF);
    return second && continues(2) && continues(3) ? 4 : 0;
  }
  return 0;
}

/// Appends each character as it is shown, or what `replace` has for one of a single byte, if
/// anything.
template <typename Replace>
std::string shown(std::string_view text, const Replace& replace) {
  std::string shown;
  shown.reserve(text.size());
  while (!text.empty()) {
    std::size_t length = shown_character(text);
    const std::string_view other = length == 1 ? replace(text.front()) : std::string_view();
    if (!other.empty()) {
      shown += other;
    } else if (length > 0) {
      shown += text.substr(0, length);
    } else {
      length = 1;
      fmt::format_to(std::back_inserter(shown), "\\x{:02x}",
                     static_cast<std::uint8_t>(text.front()));
    }
    text.remove_prefix(length);
  }
  return shown;
}

}  // namespace

std::string printable(std::string_view text) {
  return shown(text, [](char) { return std::string_view(); });
}

std::string one_line(std::string_view text) {
  return shown(text, [](char c) -> std::string_view {
    return c == '\n' ? "\\x0a" : c == '\t' ? "\\x09" : "";
  });
}

std::string markup_text(std::string_view text) {
  return shown(text, [](char c) -> std::string_view {
    switch (c) {
      case '&':
        return "&amp;";
      case '<':
        return "&lt;";
      case '>':
        return "&gt;";
      case '"':
        return "&quot;";
      case '\'':
        return "&#39;";
      default:
        return {};
    }
  });
}

std::string toml_text(std::string_view text) {
  // What cannot be shown is written out first, with a backslash of its own.
  const std::string escaped = shown(printable(text), [](char c) -> std::string_view {
    switch (c) {
      case '\\':
        return "\\\\";
      case '"':
        return "\\\"";
      case '\n':
        return "\\n";
      case '\t':
        return "\\t";
      default:
        return {};
    }
  });
  return fmt::format("\"{}\"", escaped);
}

std::string toml_value(std::string_view text) {
  const bool bare = text == "true" || text == "false" || parse_number<double>(text).has_value();
  return bare ? std::string(text) : toml_text(text);
}

std::string csv_text(std::string_view text) {
  const std::string quoted =
      shown(text, [](char c) -> std::string_view { return c == '"' ? "\"\"" : ""; });
  return quoted.find_first_of(",\"\n") == std::string::npos ? quoted
                                                            : fmt::format("\"{}\"", quoted);
}

std::string small_letters(std::string_view text) {
  std::string small(text);
  for (char& c : small) {
    c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return small;
}

std::string_view excerpt(std::string_view text, std::size_t bytes) {
  if (text.size() <= bytes) {
    return text;
  }
  std::size_t end = bytes;
  while (end > 0 && bytes - end < 3 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) {
    --end;
  }
  return text.substr(0, end);
}

}  // namespace sotto
