// A listening TCP socket that can be told to let nobody else in for a while, or only some.
//
// ZeroMQ accepts all connections. While the socket pauses the kernel drops attempts to connect,
// which their systems repeat; connections that are there go on. A rule makes the kernel drop the
// attempts of some sources only.
//
// Thread safety: one thread. Ownership: its descriptor.
#pragma once

#include <cstddef>
#include <string>

#include "connection_limiter.h"

namespace sotto::internal {

/// Descriptors that the process may open; the largest number where there is no limit.
std::size_t descriptor_limit();

class ListeningSocket {
 public:
  /// Listens at "tcp://ADDRESS:PORT", numbers only; "*" takes a free port. Sets errno and throws
  /// zmq::error_t when the system refuses.
  explicit ListeningSocket(const std::string& endpoint);
  ~ListeningSocket();
  ListeningSocket(const ListeningSocket&) = delete;
  ListeningSocket& operator=(const ListeningSocket&) = delete;

  /// A second descriptor of the same socket, for ZMQ_USE_FD, which closes it.
  int share() const;
  int descriptor() const { return socket_; }
  void pause(bool pause);
  /// Puts a rule in force, in place of a pause and of the rule before.
  void admit(const DropRule& rule);

  /// Most attempts that the kernel holds for a socket (net.core.somaxconn), if this asks for more;
  /// 0: the kernel holds all that it asks for.
  static std::size_t queue_shortage();

 private:
  int socket_ = -1;
  bool paused_ = false;
  DropRule rule_{};
};

}  // namespace sotto::internal
