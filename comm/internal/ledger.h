// What is under way on one node, whatever carries it: open exchanges, events not yet taken, and the
// peers that are gone.
//
// Thread safety: none; the transport that owns a ledger guards it. Ownership: frames and buffers
// stay the caller's.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include <sotto/base/exchange.h>
#include <sotto/base/status.h>
#include <sotto/comm/transport.h>

namespace sotto::internal {

/// The event that poll returns when it was interrupted.
inline TransportEvent interruption() {
  return {
      .kind = TransportEvent::Kind::interrupted, .tag = {}, .peer = -1, .bytes = 0, .reason = {}};
}

class Ledger {
 public:
  /// Keeps `to`, `from` and `max_frame_bytes` of the options.
  explicit Ledger(const TransportOptions& options);

  /// Opens an exchange, or a part of one: parts under one tag differ in their sends and receives.
  /// One without peers is done at once. Fault::peer_lost, and nothing opened, when one of its peers
  /// is gone. That its peers, sizes and order fit is the caller's invariant.
  Status open(const Exchange& exchange);

  /// The posted room for a frame of `from` under `tag`, if its receive is posted and not yet
  /// filled.
  std::optional<std::span<std::byte>> room(Rank from, const ExchangeTag& tag) const;
  /// True when no receive for this frame can be posted any more: one of a later round was.
  bool stale(Rank from, const ExchangeTag& tag) const;

  /// The frame stands in its room, `bytes` long.
  void received(Rank from, const ExchangeTag& tag, std::size_t bytes);
  /// The frame to `to` is handed over; its buffer is no longer needed.
  void sent(Rank to, const ExchangeTag& tag);
  /// The peer is gone. Only the first call for a peer makes an event.
  void lose(Rank peer, const std::string& reason);

  bool lost(Rank peer) const { return lost_.contains(peer); }
  /// True when a frame of the peer is due in an open exchange.
  bool awaits(Rank from) const;
  /// True when a frame to the peer is not yet handed over in an open exchange.
  bool owes(Rank to) const;
  /// True when an open exchange cannot complete without the peer.
  bool needs(Rank peer) const { return awaits(peer) || owes(peer); }

  bool has_event() const { return !events_.empty(); }
  /// Requires has_event().
  TransportEvent take_event();
  /// The fault of a wait that `deadline` has ended, naming the oldest open exchange and the peers
  /// that it waits for.
  Status overdue(const Deadline& deadline) const;

 private:
  struct Open {
    ExchangeTag tag;
    std::vector<Rank> unsent;
    std::vector<Receive> unreceived;
    bool done() const { return unsent.empty() && unreceived.empty(); }
    bool sends_to(Rank peer) const;
    bool hears(Rank peer) const;
  };

  void check_fits(const Exchange& exchange);
  using OpenExchange = std::vector<Open>::iterator;
  OpenExchange find_receive(Rank from, const ExchangeTag& tag);
  OpenExchange find_send(Rank to, const ExchangeTag& tag);
  void finish_if_done(OpenExchange exchange);

  std::vector<Rank> to_;
  std::vector<Rank> from_;
  std::size_t max_frame_bytes_;
  std::vector<Open> open_;  ///< open exchanges in the order of posting
  std::deque<TransportEvent> events_;
  std::map<Rank, std::string> lost_;
  std::map<Rank, Round> last_round_;  ///< latest round with a receive, by sender
};

}  // namespace sotto::internal
