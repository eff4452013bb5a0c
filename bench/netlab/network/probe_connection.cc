#include "probe_connection.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <cmath>

namespace sotto::netlab {
namespace {

void set_patience(int socket, double seconds) {
  timeval patience = {};
  patience.tv_sec = static_cast<time_t>(seconds);
  patience.tv_usec = static_cast<suseconds_t>((seconds - std::floor(seconds)) * 1e6);
  ::setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  ::setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  const int yes = 1;
  ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
}

sockaddr_in address_of(Host host, in_port_t port) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = port;
  address.sin_addr.s_addr = htonl(kShapedNet + static_cast<std::uint32_t>(host) + 1);
  return address;
}

template <typename Call>
auto as_address(sockaddr_in& address, const Call& call) {
  return call(reinterpret_cast<sockaddr*>(&address));
}

}  // namespace

std::optional<ProbeConnection> connect_hosts(const EmulatedNetwork& network, Host from, Host to,
                                             double patience_s) {
  ProbeConnection made;
  FileDescriptor listener;
  sockaddr_in address = address_of(to, 0);
  network.at(to).inside([&] {
    listener = FileDescriptor(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    socklen_t size = sizeof address;
    as_address(address, [&](sockaddr* a) { return ::bind(listener.get(), a, sizeof address); });
    ::listen(listener.get(), 1);
    as_address(address, [&](sockaddr* a) { return ::getsockname(listener.get(), a, &size); });
    set_patience(listener.get(), patience_s);
  });
  bool connected = false;
  network.at(from).inside([&] {
    made.sender = FileDescriptor(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    set_patience(made.sender.get(), patience_s);
    connected = as_address(address, [&](sockaddr* a) {
                  return ::connect(made.sender.get(), a, sizeof address);
                }) == 0;
  });
  if (!connected) {
    return std::nullopt;
  }
  made.receiver = FileDescriptor(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  set_patience(made.receiver.get(), patience_s);
  return made.receiver.get() >= 0 ? std::optional(std::move(made)) : std::nullopt;
}

}  // namespace sotto::netlab
