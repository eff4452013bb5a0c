// The pairs of nodes that average, and their order, in each round of AD-PSGD.
//
// In round t every node a initiates one pairing, with a neighbour that Philox draws from (seed, a,
// t), and the draw also gives the pairing's place among all of the round: pairings are ordered by
// (round, place, initiator). All nodes know the whole order without a word; one node needs only its
// own draw and those of its neighbours.
//
// A building block of AD-PSGD and its stand-in, not for users. One thread at a time; allocates only
// in the constructor. Views the topology.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <sotto/base/ids.h>
#include <sotto/topology/topology.h>

namespace sotto {

/// Two nodes that average, and when in their round.
struct Pairing {
  std::uint64_t place = 0;  ///< place in the round; where equal, `initiator` decides
  Rank initiator = 0;       ///< names the pairing within the round
  Rank partner = 0;         ///< the other node, as seen by the node that holds this list
};

class Pairings {
 public:
  /// The pairings of `node` with neighbours: nodes with an edge in both directions.
  Pairings(const Topology& topology, Rank node, std::uint64_t seed);

  /// All pairings that `node` takes part in, in their order: its own, and those of neighbours that
  /// drew it. Valid until the next call.
  std::span<const Pairing> of(Round round);

 private:
  /// The pairing that `initiator` initiates, with its partner; `partner` = `initiator` when it has
  /// no neighbour.
  Pairing draw(Rank initiator, Round round) const;

  const Topology& topology_;
  Rank node_;
  std::uint64_t seed_;
  std::vector<Pairing> list_;
};

}  // namespace sotto
