// When all that came on a connection that ended can be received.
//
// ZeroMQ says that a connection ended, hands over the rest of what came on it, and closes its
// descriptor, in this order and in one go of its own thread (stream_engine_base_t::error of libzmq
// 4.3). So once the descriptor is closed nothing comes any more that a receive does not find. As
// numbers of descriptors are reused, a connection is told by its file, which no other one is while
// it is open.
//
// Thread safety: none. Ownership: none; a descriptor is looked at by its number.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>

#include <sotto/comm/deadline.h>

namespace sotto::internal {

/// The longest time for which what is on its way is waited for once a connection has ended, where
/// nothing shows that all has come.
inline constexpr std::chrono::milliseconds kSettle{200};
/// Time between two looks whether an end is complete. There is no event for that, and ZeroMQ is
/// about to get there.
inline constexpr std::chrono::milliseconds kEndLook{1};

/// An open file: it tells what a descriptor is from what had or will have its number.
class OpenFile {
 public:
  /// The file that a descriptor is now; none: it is closed.
  static std::optional<OpenFile> at(int descriptor);
  bool operator==(const OpenFile&) const = default;

 private:
  OpenFile(dev_t device, ino_t inode) : device_(device), inode_(inode) {}
  dev_t device_;
  ino_t inode_;
};

/// The end of a connection, as ZeroMQ said it.
class ConnectionEnd {
 public:
  using Time = Deadline::Clock::time_point;

  /// `file` is what the descriptor was when the connection began.
  ConnectionEnd(int descriptor, std::optional<OpenFile> file, Time now)
      : descriptor_(descriptor), file_(file), since_(now) {}

  /// Whether all that came on the connection can be received now. True after kSettle in any case.
  bool complete(Time now) const {
    return !file_ || now - since_ >= kSettle || OpenFile::at(descriptor_) != file_;
  }

 private:
  int descriptor_;
  std::optional<OpenFile> file_;
  Time since_;
};

}  // namespace sotto::internal
