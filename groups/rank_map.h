// An algorithm within a group: it thinks in positions, and its exchanges go to the members' ranks
// in the job.
//
// Frames say positions and group 0's buckets, as both ends know the group. One thread at a time.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include <sotto/base/exchange.h>
#include <sotto/base/status.h>
#include <sotto/groups/node_grid.h>
#include <sotto/optim/algorithm.h>

namespace sotto {

class RankMap {
 public:
  /// A map between positions in `group` and ranks in the job.
  explicit RankMap(Group group) : group_(std::move(group)) {}

  /// The peers, given by position, by their ranks.
  Peers to_ranks(Peers peers) const {
    for (auto* const side : {&peers.to, &peers.from}) {
      for (Rank& peer : *side) {
        peer = group_.rank_of(peer);
      }
    }
    return peers;
  }
  /// Writes ranks over the positions in an exchange.
  void to_ranks(Exchange& exchange) const {
    for (Send& send : exchange.sends) {
      send.to = group_.rank_of(send.to);
    }
    for (Receive& receive : exchange.receives) {
      receive.from = group_.rank_of(receive.from);
    }
  }
  /// The exchange with positions in place of ranks, which stays until the next call.
  const Exchange& to_positions(const Exchange& exchange) {
    positions_ = exchange;
    for (Send& send : positions_.sends) {
      send.to = position_of(send.to);
    }
    for (Receive& receive : positions_.receives) {
      receive.from = position_of(receive.from);
    }
    return positions_;
  }
  /// The group whose positions are mapped.
  const Group& group() const { return group_; }

 private:
  Rank position_of(Rank rank) const;

  Group group_;
  Exchange positions_;
};

}  // namespace sotto
