// The exception for mistakes in a request: a wrong setting, file or pairing.
//
// Thrown while something is built, never while it runs: faults of the world are `Status` values
// (status.h), and broken invariants abort (check.h).
#pragma once

#include <cstddef>
#include <stdexcept>
#include <string>
#include <string_view>

namespace sotto {

/// `text` for a terminal or a log: UTF-8 stays as it is; control characters but newline and tab,
/// and bytes that are no UTF-8, become a backslash, x and two digits. For messages that quote what
/// others wrote.
std::string printable(std::string_view text);

/// The first characters of `text`, `bytes` at most: what a message quotes of it. (A width in a
/// format string counts bytes that are no UTF-8 as nothing.)
std::string_view excerpt(std::string_view text, std::size_t bytes = 60);

/// A request that cannot be served. `what()` says what is wrong, where, and what would do; it is
/// printable.
class Error : public std::runtime_error {
 public:
  /// `message` says what is wrong, where, and what would do; it is made printable.
  explicit Error(const std::string& message) : std::runtime_error(printable(message)) {}
};

/// What ends the making of something that has to wait when its caller wants it to end: where no
/// `Status` can be returned, the counterpart of Fault::stopped.
class Stopped : public Error {
 public:
  using Error::Error;
};

/// Throws `Error` with the message "FIELD: VALUE is refused: REASON".
[[noreturn]] void refuse(std::string_view field, std::string_view value, std::string_view reason);

}  // namespace sotto
