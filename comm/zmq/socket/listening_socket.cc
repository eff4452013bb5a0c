#include "listening_socket.h"

#include <fcntl.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

#include <zmq.hpp>

#include "../../internal/tcp.h"

namespace sotto::internal {
namespace {

/// Attempts that the kernel holds until ZeroMQ takes them.
constexpr int kBacklog = 100;

[[noreturn]] void fail(int socket, int error) {
  if (socket >= 0) {
    ::close(socket);
  }
  errno = error;
  throw zmq::error_t();
}

}  // namespace

ListeningSocket::ListeningSocket(const std::string& endpoint) {
  const auto address = numeric_address(endpoint);
  if (address == nullptr) {
    fail(-1, EINVAL);
  }
  const int made =
      ::socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_TCP);
  const int on = 1;
  if (made < 0 || ::setsockopt(made, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
      ::bind(made, address->ai_addr, address->ai_addrlen) != 0 || ::listen(made, kBacklog) != 0) {
    fail(made, errno);
  }
  socket_ = made;
}

ListeningSocket::~ListeningSocket() { ::close(socket_); }

int ListeningSocket::share() const {
  const int other = ::fcntl(socket_, F_DUPFD_CLOEXEC, 0);
  if (other < 0) {
    throw zmq::error_t();
  }
  return other;
}

void ListeningSocket::pause(bool pause) {
  if (pause == paused_) {
    return;
  }
  // A filter that takes nothing of any packet. Connections that are there have none; new ones
  // would inherit it, but there are none while it stands.
  sock_filter nothing{BPF_RET | BPF_K, 0, 0, 0};
  const sock_fprog filter{1, &nothing};
  const int ignored = 0;
  const int done =
      pause ? ::setsockopt(socket_, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof filter)
            : ::setsockopt(socket_, SOL_SOCKET, SO_DETACH_FILTER, &ignored, sizeof ignored);
  paused_ = done == 0 ? pause : paused_;  // a system that cannot do this goes on as before
}

}  // namespace sotto::internal
