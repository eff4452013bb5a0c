// What a transport must know of a node's algorithm, for loops of one's own around a Driver;
// Optimizer does it by itself. A pure function; thread-safe.
#pragma once

#include <sotto/base/ids.h>
#include <sotto/comm/transport.h>
#include <sotto/optim/algorithm.h>

namespace sotto {

/// The options of node `rank` of `nodes` whose algorithm has these peers: whom it sends to and
/// hears, its longest frame, and how far peers may be ahead. The store where the nodes meet, and
/// all else, is the caller's to set.
TransportOptions transport_options(const Peers& peers, Rank rank, int nodes);

}  // namespace sotto
