// A port of loopback for a test's server.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>

#include <doctest/doctest.h>

namespace sotto::test {

inline sockaddr_in loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  return address;
}

/// A TCP port of loopback that nobody uses. It stays this process's: while the socket that has it
/// is there, and it stays to the end, the system gives the port to nobody who asks for any, neither
/// to a server nor to a connection; servers that set SO_REUSEADDR, as all here do, can listen at
/// it.
inline int free_port() {
  const int holder = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int on = 1;
  sockaddr_in address = loopback(0);
  socklen_t size = sizeof address;
  auto* any = reinterpret_cast<sockaddr*>(&address);
  REQUIRE(::setsockopt(holder, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0);
  REQUIRE(::bind(holder, any, size) == 0);
  REQUIRE(::getsockname(holder, any, &size) == 0);
  return ntohs(address.sin_port);
}

}  // namespace sotto::test
