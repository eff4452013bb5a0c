// Which connection of a network goes the way back of which: acknowledgements wait in its queue.
//
// One thread at a time. Plain values.
#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include <sotto/base/ids.h>
#include <sotto/sim/network/network.h>

namespace sotto {

class ConnectionPairs {
 public:
  /// Pairs a connection with the first one the other way, now or once that is added.
  void add(ConnectionId id, Rank from, Rank to) {
    by_ends_.try_emplace({from, to}, id);
    if (const auto back = by_ends_.find({to, from}); back != by_ends_.end()) {
      reverse_.resize(std::max<std::size_t>(reverse_.size(), id + std::size_t{1}), kNone);
      reverse_[id] = back->second;
      reverse_[back->second] = id;
    }
  }
  /// The connection that goes the way back; empty: none does, or acknowledgements do not wait.
  std::optional<ConnectionId> reverse(ConnectionId id) const {
    return id < reverse_.size() && reverse_[id] != kNone ? std::optional(reverse_[id])
                                                         : std::nullopt;
  }

 private:
  static constexpr ConnectionId kNone = ~ConnectionId{0};

  std::map<std::pair<Rank, Rank>, ConnectionId> by_ends_;
  std::vector<ConnectionId> reverse_;
};

}  // namespace sotto
