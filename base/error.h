// The exception for mistakes in a request: a wrong setting, file or pairing.
//
// Thrown while something is built, never while it runs: faults of the world are `Status` values
// (status.h), and broken invariants abort (check.h).
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

#include <sotto/base/text.h>

namespace sotto {

/// A request that cannot be served. `what()` says what is wrong, where, and what would do; it is
/// printable.
class Error : public std::runtime_error {
 public:
  /// `message` says what is wrong, where, and what would do; it is made printable.
  explicit Error(const std::string& message) : std::runtime_error(printable(message)) {}
};

/// Thrown by a constructor whose wait was ended by its caller's request: the counterpart of
/// Fault::stopped where no `Status` can be returned.
class Stopped : public Error {
 public:
  using Error::Error;
};

/// Throws `Error` with the message "FIELD: VALUE is refused: REASON".
[[noreturn]] void refuse(std::string_view field, std::string_view value, std::string_view reason);

}  // namespace sotto
