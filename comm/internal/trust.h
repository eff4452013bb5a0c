// What a node's list of peers means for one transport: which neighbours it lets take part, where
// they listen, and which peers it does not trust any more. Pure functions; thread-safe.
#pragma once

#include <map>
#include <optional>
#include <string>

#include <sotto/comm/transport.h>

namespace sotto::internal {

/// Throws Error unless the list of peers lets every neighbour of `options` do what the graph asks
/// of it, and agrees with the node's own key and rank. Requires security.
void check_trust(const TransportOptions& options);

/// Copies the options, with a list of peers that stays as it is now. Requires security.
TransportOptions with_present_list(TransportOptions options);

/// The neighbours' endpoints, when the list says where they listen; empty when they are to be met
/// through the store. Throws Error when it says so of some only, or names a host that is unknown.
/// Requires a list that does not change meanwhile.
std::map<Rank, std::string> static_endpoints(const TransportOptions& options);

/// The port at which this node's line of the list says that it listens; "*" for any.
std::string own_port(const TransportOptions& options);

/// The key of a neighbour, as text, if it may (still) do what the graph asks of it.
std::optional<std::string> trusted_key(const TransportOptions& options, Rank peer);

}  // namespace sotto::internal
