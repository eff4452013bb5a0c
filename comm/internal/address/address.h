// Names turned into addresses: where a server may listen, and where a client connects.
// Thread-safe.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <sotto/comm/deadline.h>

namespace sotto::internal {

struct Address {
  std::string numeric;  ///< "127.0.0.1", "::1"
  bool ipv6 = false;
  /// "tcp://127.0.0.1:9000", "tcp://[::1]:*"
  std::string endpoint(std::string_view port) const;
};

/// The hosts that may connect.
struct Reach {
  bool beyond_loopback = false;  ///< it is encrypted, or plain text is allowed
  bool everywhere = false;       ///< "0.0.0.0": peers know by other means where to connect
};

/// Resolves an address, a host name or a network interface. Throws Error naming `field` when it is
/// none of these, when it reaches further than `reach`, or when this machine does not have it.
Address resolve_bind_address(std::string_view field, const std::string& text, const Reach& reach);

/// The network interface that has the address; empty when none does.
std::string interface_of(const Address& address);

/// Resolves an address or a host name, IPv4 before IPv6. Throws Error naming `field` otherwise.
Address resolve_host(std::string_view field, const std::string& text);

/// All addresses of a host, IPv4 before IPv6, at most kMostAddresses; none when the name is
/// unknown.
std::vector<Address> resolve_all(const std::string& text);
inline constexpr std::size_t kMostAddresses = 8;

/// Waits until a name stands for an address or an interface of this machine: a cluster's name
/// service knows a node only once it has been started. Looks every second; whether the name is
/// known by the deadline. Throws Stopped, naming `field`, once a stop is requested, also where a
/// name server does not answer, and Shortage where no thread can ask it.
bool await_name(std::string_view field, const std::string& text, Deadline deadline);

}  // namespace sotto::internal
