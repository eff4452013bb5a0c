#include "torch_connection.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <utility>

#include "../internal/address/tcp.h"

namespace sotto::internal {
namespace {

Status unanswered(const Deadline& deadline) {
  return deadline.stopped() ? Status(Fault::stopped, "stopped while waiting for it")
                            : Status(Fault::deadline, "it did not answer");
}

}  // namespace

Result<TorchConnection> TorchConnection::open(const std::string& endpoint, Deadline deadline) {
  FileDescriptor socket = connect_by(endpoint, deadline);
  if (!socket) {
    return deadline.stopped() ? unanswered(deadline)
                              : Status(Fault::io, "nobody takes a connection");
  }
  // Requests are small, and each is waited for.
  const int on = 1;
  (void)::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return TorchConnection(std::move(socket));
}

Status TorchConnection::send(std::span<const std::byte> bytes, Deadline deadline) const {
  while (!bytes.empty()) {
    const auto sent = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent > 0) {
      bytes = bytes.subspan(static_cast<std::size_t>(sent));
    } else if (errno != EAGAIN && errno != EINTR) {
      return {Fault::io, "it closed the connection"};
    } else if (!await_ready(socket_.get(), POLLOUT, deadline)) {
      return unanswered(deadline);
    }
  }
  return {};
}

Status TorchConnection::receive(std::span<std::byte> bytes, Deadline deadline) const {
  while (!bytes.empty()) {
    const auto got = ::recv(socket_.get(), bytes.data(), bytes.size(), 0);
    if (got > 0) {
      bytes = bytes.subspan(static_cast<std::size_t>(got));
    } else if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
      return {Fault::io, "it closed the connection"};
    } else if (!await_ready(socket_.get(), POLLIN, deadline)) {
      return unanswered(deadline);
    }
  }
  return {};
}

}  // namespace sotto::internal
