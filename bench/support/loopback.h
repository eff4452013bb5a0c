// Ports of loopback that a benchmark's servers listen at. Pure functions, but for the sockets.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>

#include <sotto/base/file_descriptor.h>

namespace sotto::bench {

/// An IPv4 address, `host` in the host's byte order.
inline sockaddr_in address_of(std::uint32_t host, int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(host);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  return address;
}

/// A port of loopback.
inline sockaddr_in loopback(int port) { return address_of(INADDR_LOOPBACK, port); }

/// A TCP socket bound to a port of loopback, and the port, which nobody else gets while the socket
/// is there; servers that set SO_REUSEADDR can listen at it. Throws std::runtime_error.
inline std::pair<FileDescriptor, int> hold_port() {
  FileDescriptor holder(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = loopback(0);
  socklen_t size = sizeof address;
  auto* any = reinterpret_cast<sockaddr*>(&address);
  const int on = 1;
  // The option is set after the socket is bound: before, two holders could have one port.
  if (::bind(holder.get(), any, size) != 0 || ::getsockname(holder.get(), any, &size) != 0 ||
      ::setsockopt(holder.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0) {
    throw std::runtime_error(std::string("no port of loopback is to be had: ") +
                             std::strerror(errno));
  }
  return {std::move(holder), ntohs(address.sin_port)};
}

}  // namespace sotto::bench
