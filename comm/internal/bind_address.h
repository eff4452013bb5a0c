// Where a server may listen. Resolves what the user wrote and keeps plain text off the network.
// Thread-safe.
#pragma once

#include <string>
#include <string_view>

namespace sotto::internal {

struct BindAddress {
  std::string numeric;  ///< "127.0.0.1", "::1"
  bool ipv6 = false;
  /// The address as it stands in front of ":PORT"; IPv6 in brackets.
  std::string host_part() const { return ipv6 ? "[" + numeric + "]" : numeric; }
};

/// Resolves an address, a host name or a network interface. Throws Error naming `field` when it is
/// none of these, when it is a wildcard (peers could not reach it), or when it lies beyond loopback
/// and `insecure` is not set: nothing here encrypts.
BindAddress resolve_bind_address(std::string_view field, const std::string& text, bool insecure);

}  // namespace sotto::internal
