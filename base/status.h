// Faults of the world as values: a lost peer, a deadline, malformed bytes, a NaN.
//
// `Status` is a success or a fault with a message; `Result<T>` is a T or a fault. Both are plain
// values that own their message; they are as thread-safe as `std::string`.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <sotto/base/check.h>
#include <sotto/base/text.h>

namespace sotto {

/// The kind of a fault. Nodes tell each other its number (FaultNotice): numbers stay, and a
/// new kind comes last.
enum class Fault {
  none,        ///< nothing
  malformed,   ///< bytes that break the format, or do not fit an announced length
  unexpected,  ///< well-formed, but not due now: another run, round, phase or sender
  non_finite,  ///< a NaN or an infinity in a gradient, a parameter or a frame
  peer_lost,   ///< a peer closed, crashed or became unreachable
  deadline,    ///< a wait reached its deadline
  io,          ///< the operating system refused a read or write
  budget,      ///< the privacy budget is spent, so that nothing more may leave this node
  ended,       ///< the nodes have agreed to end here, because one was told to or is out of data
  stopped,     ///< the caller wanted a wait, or the run, to end
  backlog,     ///< a peer takes nothing, and as much waits for it as may
};

/// The fault's name as used in messages and JSON, e.g. "peer_lost".
std::string_view fault_name(Fault fault);

/// Success, or a fault with a message that says what, where and what to do.
class [[nodiscard]] Status {
 public:
  Status() = default;
  /// A fault other than Fault::none, with a message. The message is made printable, as it may quote
  /// bytes of a peer or a file.
  Status(Fault fault, const std::string& message) : fault_(fault), message_(printable(message)) {
    check(fault != Fault::none, "a Status with a message has a fault");
  }

  bool ok() const { return fault_ == Fault::none; }
  explicit operator bool() const { return ok(); }
  Fault fault() const { return fault_; }
  const std::string& message() const { return message_; }

  /// This fault with "CONTEXT: " in front of the message; success stays success.
  Status with_context(std::string_view context) const;

 private:
  Fault fault_ = Fault::none;
  std::string message_;
};

/// A value, or the fault that kept it from being made.
template <typename T>
class [[nodiscard]] Result {
 public:
  /// A value, so that functions return it as it is.
  Result(T value) : value_(std::move(value)) {}  // NOLINT(google-explicit-constructor)
  /// A fault in place of the value; `status` must hold one.
  Result(Status status) : status_(std::move(status)) {  // NOLINT(google-explicit-constructor)
    check(!status_.ok(), "a Result without a value has a fault");
  }

  bool ok() const { return value_.has_value(); }
  explicit operator bool() const { return ok(); }
  const Status& status() const { return status_; }

  /// The value; requires ok().
  T& value() {
    check(ok(), "Result::value() on a fault");
    return *value_;
  }
  /// The value. Requires ok().
  const T& value() const {
    check(ok(), "Result::value() on a fault");
    return *value_;
  }
  T& operator*() { return value(); }
  const T& operator*() const { return value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

 private:
  std::optional<T> value_;
  Status status_;
};

/// A fault of kind deadline with "(the timeout is 60 s)" behind its message, which says which
/// setting ended the wait; any other status as it is.
Status naming_timeout(const Status& status, std::chrono::milliseconds timeout);

}  // namespace sotto
