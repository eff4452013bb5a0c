// What has happened on a site's channels and was not yet asked for.
//
// Bounded: an `up` that nobody saw is taken back with its `down`, and messages are counted against
// what their peer may have here. Pure; not thread-safe. Ownership: the messages.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <sotto/comm/channels.h>

namespace sotto::internal {

class ChannelEvents {
 public:
  bool empty() const { return events_.empty(); }
  /// Cost of the peer's messages that wait here (channel_wire.h).
  std::uint64_t held(Rank peer) const;
  /// No `up` or `down` of the peer waits: the reader of the events knows how things stand.
  bool known(Rank peer) const;

  /// Nothing of the peer waits.
  bool none_of(Rank peer) const { return known(peer) && held(peer) == 0; }

  void up(Rank peer);
  void message(Rank peer, std::vector<std::byte> message);
  void down(Rank peer, std::string reason);
  /// Drops the peer's messages.
  void forget(Rank peer);
  /// Drops all that is known of a peer of which nothing waits.
  void drop(Rank peer) { waiting_.erase(peer); }

  std::optional<ChannelEvent> take();

 private:
  struct Waiting {
    std::uint64_t held = 0;
    std::size_t changes = 0;  ///< number of waiting `up`s and `down`s
  };

  std::deque<ChannelEvent> events_;
  std::map<Rank, Waiting> waiting_;
};

}  // namespace sotto::internal
