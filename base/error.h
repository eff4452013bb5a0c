// The exception for mistakes in a request: a wrong setting, file or pairing.
//
// Thrown while something is built; while it runs only Shortage is, where no Status can be returned.
// Faults of the world are `Status` values (status.h), and broken invariants abort (check.h).
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

#include <sotto/base/setting_text.h>
#include <sotto/base/text.h>

namespace sotto {

/// A request that cannot be served. `what()` says what is wrong, where, and what would do, in the
/// words of a C++ program, and is printable; `render` says it in the words of another place.
class Error : public std::runtime_error {
 public:
  /// `reason` says what is wrong, where, and what would do.
  explicit Error(const SettingText& reason);
  /// "FIELD: REASON". `field` is the name of the setting that is at fault, in snake case, or else
  /// of what was asked for.
  Error(std::string_view field, const SettingText& reason);
  /// "FIELD: 'VALUE' is refused: REASON"
  Error(std::string_view field, std::string_view value, const SettingText& reason);

  /// The setting, or what else is at fault; empty where the reason says it.
  const std::string& field() const { return parts_->field; }
  /// What the field was set to, where the error is about that.
  const std::optional<std::string>& value() const { return parts_->value; }
  /// What is wrong with it, and what would do.
  const SettingText& reason() const { return parts_->reason; }

  /// The whole message, printable, with settings as a place spells them.
  std::string render(const Spelling& spelling) const;
  /// This error, as one of another field: for a setting that goes by another name further out.
  Error renamed(std::string_view field) const;
  /// This error where it has a field, else with this one: for a file that a setting names.
  Error about(std::string_view field) const;

 private:
  struct Parts {
    std::string field;
    std::optional<std::string> value;
    SettingText reason;
  };
  explicit Error(Parts parts);

  std::shared_ptr<const Parts> parts_;  ///< so that copies do not throw
};

/// Thrown by a constructor whose wait was ended by its caller's request: the counterpart of
/// Fault::stopped where no `Status` can be returned.
class Stopped : public Error {
 public:
  using Error::Error;
};

/// Thrown when the system refuses a resource to a running node: the counterpart of Fault::io where
/// no `Status` can be returned.
class Shortage : public Error {
 public:
  using Error::Error;
};

/// Throws `Error` with the message "FIELD: 'VALUE' is refused: REASON".
[[noreturn]] void refuse(std::string_view field, std::string_view value, const SettingText& reason);
/// Refuses a number below `least` or above `most`, and says these. Throws Error.
void require_between(std::string_view field, std::size_t value, std::size_t least,
                     std::size_t most);

}  // namespace sotto
