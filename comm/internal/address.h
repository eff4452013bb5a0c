// Names turned into addresses: where a server may listen, and where a client connects.
// Thread-safe.
#pragma once

#include <string>
#include <string_view>

namespace sotto::internal {

struct Address {
  std::string numeric;  ///< "127.0.0.1", "::1"
  bool ipv6 = false;
  /// "tcp://127.0.0.1:9000", "tcp://[::1]:*"
  std::string endpoint(std::string_view port) const;
};

/// Resolves an address, a host name or a network interface. Throws Error naming `field` when it is
/// none of these, when it is a wildcard (peers could not reach it), when it lies beyond loopback
/// and `insecure` is not set (nothing here encrypts), or when this machine does not have it.
Address resolve_bind_address(std::string_view field, const std::string& text, bool insecure);

/// Resolves an address or a host name, IPv4 before IPv6. Throws Error naming `field` otherwise.
Address resolve_host(std::string_view field, const std::string& text);

}  // namespace sotto::internal
