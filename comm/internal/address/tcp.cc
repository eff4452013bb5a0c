#include "tcp.h"

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <string>
#include <utility>

namespace sotto::internal {
namespace {

constexpr std::string_view kScheme = "tcp://";

/// Whether a connection that was begun is there; false too when the deadline came first.
bool established(int socket, Deadline deadline) {
  if (!await_ready(socket, POLLOUT, deadline)) {
    return false;
  }
  int error = 0;
  socklen_t size = sizeof error;
  return ::getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error == 0;
}

}  // namespace

NumericAddress numeric_address(std::string_view endpoint) {
  NumericAddress none(nullptr, &::freeaddrinfo);
  const auto colon = endpoint.rfind(':');
  if (!endpoint.starts_with(kScheme) || colon < kScheme.size()) {
    return none;
  }
  std::string host(endpoint.substr(kScheme.size(), colon - kScheme.size()));
  const std::string port(endpoint.substr(colon + 1));
  if (host.size() >= 2 && host.front() == '[') {
    host = host.substr(1, host.size() - 2);
  }
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (::getaddrinfo(host.c_str(), port == "*" ? "0" : port.c_str(), &hints, &found) != 0) {
    return none;
  }
  return {found, &::freeaddrinfo};
}

bool await_ready(int descriptor, short events, Deadline deadline) {
  pollfd item = {descriptor, events, 0};
  while (::poll(&item, 1, deadline.look_ms()) <= 0) {
    if (deadline.expired()) {
      return false;
    }
  }
  return true;
}

FileDescriptor connect_by(std::string_view endpoint, Deadline deadline) {
  const auto address = numeric_address(endpoint);
  if (address == nullptr) {
    return {};
  }
  FileDescriptor socket(
      ::socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_TCP));
  const bool done =
      socket && (::connect(socket.get(), address->ai_addr, address->ai_addrlen) == 0 ||
                 (errno == EINPROGRESS && established(socket.get(), deadline)));
  return done ? std::move(socket) : FileDescriptor();
}

}  // namespace sotto::internal
