// Ports of loopback for a test's servers.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <iterator>
#include <random>
#include <vector>

#include <doctest/doctest.h>

namespace sotto::test {

inline sockaddr_in loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  return address;
}

/// A socket that has a TCP port of loopback; -1 where another has it.
inline int hold_port(int port) {
  const int holder = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int on = 1;
  sockaddr_in address = loopback(port);
  // The option is set after the socket is bound: before, two holders could have one port.
  if (::bind(holder, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) {
    REQUIRE(::setsockopt(holder, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0);
    return holder;
  }
  ::close(holder);
  return -1;
}

/// The first of `count` TCP ports of loopback in a row that nobody uses. They stay this process's:
/// while the sockets that have them are there, and they stay to the end, the system gives the ports
/// to no other server; servers that set SO_REUSEADDR, as all here do, can listen at them. They lie
/// below those from which the system serves connections and datagrams that ask for any port
/// (net.ipv4.ip_local_port_range): a datagram's would keep a node from the same number.
inline int free_ports(int count) {
  constexpr int kFirst = 12'000;
  constexpr int kPast = 32'000;
  std::random_device random;
  for (int attempt = 0; attempt < 10'000; ++attempt) {
    const int first = kFirst + static_cast<int>(random() % (kPast - kFirst));
    std::vector<int> holders;
    while (std::ssize(holders) < count) {
      const int next = hold_port(first + static_cast<int>(holders.size()));
      if (next < 0) {
        break;
      }
      holders.push_back(next);
    }
    if (std::ssize(holders) == count) {
      return first;
    }
    for (const int holder : holders) {
      ::close(holder);
    }
  }
  FAIL("no " << count << " free ports in a row");
  return 0;
}

/// A TCP port of loopback that nobody uses, held as those of `free_ports`.
inline int free_port() { return free_ports(1); }

}  // namespace sotto::test
