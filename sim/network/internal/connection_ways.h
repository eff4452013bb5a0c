// The ways of a network's connections, there and back: the links that each goes over, and how long
// it takes at present.
//
// One thread at a time. Views a platform for the time of a call only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <sotto/base/ids.h>
#include <sotto/sim/network/link_states.h>
#include <sotto/sim/network/network.h>
#include <sotto/sim/network/path_store.h>

namespace sotto {

class ConnectionWays {
 public:
  /// Has no connection yet, over the links of `platform`. `seed` is that of the jitter.
  ConnectionWays(const Platform& platform, const NetworkModel& model, std::uint64_t seed)
      : latency_factor_(model.latency_factor),
        seed_(seed),
        links_(platform, model.bandwidth_factor) {}

  void reserve(std::size_t more) { ways_.reserve(ways_.size() + more); }
  /// The ways of the next connection, by the platform's routes; throws Error when none leads there.
  ConnectionId add(const Platform& platform, Rank from, Rank to);
  std::size_t size() const { return ways_.size(); }

  Rank from(ConnectionId id) const { return ways_[id].from; }
  Rank to(ConnectionId id) const { return ways_[id].to; }
  std::span<const LinkId> there(ConnectionId id) const { return paths_.links(ways_[id].there); }
  /// Empty where there is no way back.
  std::span<const LinkId> back(ConnectionId id) const { return paths_.links(ways_[id].back); }

  /// The links at present. Whoever changes a link's latency calls update() for its users.
  LinkStates& links() { return links_; }
  const LinkStates& links() const { return links_; }
  /// The latency of a link on the connection's way has changed.
  void update(ConnectionId id);

  /// Whether no link is cut.
  bool open(ConnectionId id) const { return links_.open(there(id)); }
  /// Likewise of the way back; of the way there when there is none back.
  bool open_back(ConnectionId id) const { return links_.open(back_or_there(id)); }
  /// Latency without jitter.
  SimTime latency(ConnectionId id) const { return ways_[id].latency; }
  /// Latency of the way back, without jitter; of the way there when there is none back.
  SimTime latency_back(ConnectionId id) const { return latency_along(back_or_there(id)); }
  /// How long a packet and its acknowledgement take, without queues and the model's factor.
  SimTime round_trip(ConnectionId id) const;
  /// The latency of the next message or packet, with its jitter.
  SimTime draw_latency(ConnectionId id);

 private:
  struct Way {
    Rank from = 0;
    Rank to = 0;
    PathStore::Path there;
    PathStore::Path back = {};  ///< empty: there is none
    SimTime latency = 0;
    std::uint32_t drawn = 0;  ///< draws of jitter so far
    bool jittery = false;
  };

  std::span<const LinkId> back_or_there(ConnectionId id) const {
    return ways_[id].back.count == 0 ? there(id) : back(id);
  }
  /// The latency of all links of the way together, with the model's factor.
  SimTime latency_along(std::span<const LinkId> way) const;

  double latency_factor_;
  std::uint64_t seed_;
  LinkStates links_;
  PathStore paths_;
  std::vector<Way> ways_;
};

}  // namespace sotto
