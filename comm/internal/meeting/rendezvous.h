// How two nodes learn each other's addresses through a store, and that the addresses are of now.
//
// A store may outlive a run that crashed, and the addresses in it with it. So each node draws a
// number when it starts, publishes it with its address, and echoes the peer's number as soon as it
// sees one, under a key that the number is part of. Whoever's number is echoed knows that the peer
// is there now, and that so is the peer's address: it was published before. Every wait is for a key
// that is not there yet, so that a neighbour costs the store some seven requests and no polling.
//
// Thread safety: one call a node at a time. Ownership: none kept.
#pragma once

#include <cstddef>
#include <map>
#include <string_view>
#include <vector>

#include <sotto/comm/transport.h>

namespace sotto::internal {

using Addresses = std::map<Rank, std::vector<std::byte>>;

/// Gives `mine[peer]` to each neighbour and returns what the neighbours gave. `kind` keeps
/// transports apart. Nothing of it stays in the store when all nodes return. Fault::deadline names
/// the nodes that did not come; faults of the store are passed on.
Result<Addresses> meet(const TransportOptions& options, std::string_view kind,
                       const Addresses& mine, Deadline deadline);

}  // namespace sotto::internal
