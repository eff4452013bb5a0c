// Text that others wrote, as it goes out: to terminals and logs, into pages, drawings and files.
// The functions that return a std::string take any bytes and, but for small_letters, give valid
// UTF-8 without control characters; those that return a view only cut. (JSON: json_text.h.)
//
// Pure functions; thread-safe.
#pragma once

#include <cstddef>
#include <string>
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

/// `text` with small letters for the capitals of ASCII, whatever the locale; all other bytes stay.
std::string small_letters(std::string_view text);

/// `text` for a terminal or a log: UTF-8 stays as it is; control characters but newline and tab,
/// those that turn the direction of text, and bytes that are no UTF-8, become a backslash, x and
/// two digits a byte. For messages that quote what others wrote.
std::string printable(std::string_view text);

/// `printable`, on one line: newlines and tabs are written out too. For cells of tables, names, and
/// lines of files.
std::string one_line(std::string_view text);

/// `printable`, for HTML and XML, between tags and in attributes within quotes of either kind.
std::string markup_text(std::string_view text);

/// `printable`, as a basic string of TOML with its quotes.
std::string toml_text(std::string_view text);

/// A value of TOML that reads as `text`: a number, true and false as they are, else `toml_text`.
std::string toml_value(std::string_view text);

/// `printable`, as a field of CSV (RFC 4180): in quotes where it needs them.
std::string csv_text(std::string_view text);

/// The first characters of `text`, `bytes` at most: what a message quotes of it. (A width in a
/// format string counts bytes that are no UTF-8 as nothing.)
std::string_view excerpt(std::string_view text, std::size_t bytes = 60);

}  // namespace sotto
