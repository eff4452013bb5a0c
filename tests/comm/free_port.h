// A port of loopback for a test's server.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <doctest/doctest.h>

namespace sotto::test {

/// A TCP port of loopback that nobody uses now.
inline int free_port() {
  const int listener = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* any = reinterpret_cast<sockaddr*>(&address);
  REQUIRE(::bind(listener, any, size) == 0);
  REQUIRE(::getsockname(listener, any, &size) == 0);
  ::close(listener);
  return ntohs(address.sin_port);
}

}  // namespace sotto::test
