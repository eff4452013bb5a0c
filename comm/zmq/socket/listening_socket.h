// A listening TCP socket that can be told to let nobody else in for a while.
//
// ZeroMQ accepts whoever comes. While the socket pauses the kernel drops attempts to connect, which
// their systems repeat; connections that are there go on.
//
// Thread safety: one thread. Ownership: its descriptor.
#pragma once

#include <string>

namespace sotto::internal {

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
  void pause(bool pause);

 private:
  int socket_ = -1;
  bool paused_ = false;
};

}  // namespace sotto::internal
