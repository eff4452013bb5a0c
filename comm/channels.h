// Channels between sites: whole messages, both ways, to peers that come, go and come back.
//
// Contract. A channel to each listed peer is tried for as long as the object lives; a peer with
// `may_send` or `send_to` in the list has a channel, since receipts go back on a one-sided edge
// too. The reader of a message judges its contents. `up` says that messages flow both ways; what
// was sent before is not delivered. Between an `up` and its `down` messages arrive whole, in order,
// once. `down` says why: the connection ended, nothing was heard for the deadline, the peer broke a
// rule of the wire, the list of peers changed, or `close` was called. Messages under way are then
// lost; messages that had arrived are delivered before the `down`, except after a change of the
// list or `close`. An `up` that was never polled is withdrawn with its `down`, so that events do
// not pile up. Nothing blocks without a deadline.
//
// One key, one process. While a peer's channel is up, another connection that proves the same key
// waits. If the first process falls silent, the other takes its place; if the first is still heard,
// two processes have one key: `contested` reports that, and the first stays.
//
// A peer is silent when neither a chunk nor a sign of life came from it for `timeout`, or longer
// where its link, as measured, needs longer for a chunk; so that a large message on a slow link
// never looks like death, and a crash is noticed at once by its broken connection. A thread of the
// object sends signs of life, so that its user may be busy for any time.
//
// Memory. Of each peer, at most two of the longest messages are held here; more is not let in until
// they have been taken with `poll`. To each peer, at most `max_queued_bytes` wait. Beside them a
// few chunks of 256 KiB are on their way in each direction. The memory of two messages that nobody
// needs any more waits for the next ones (`keep`).
//
// Thread safety: one thread at a time. Ownership: owns its sockets, its thread and copies of
// messages.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <sotto/base/ids.h>
#include <sotto/base/shared_bytes.h>
#include <sotto/base/status.h>
#include <sotto/comm/deadline.h>
#include <sotto/comm/trust/security.h>

namespace sotto {

/// An event of a channel: a peer came or went, or a message arrived.
struct ChannelEvent {
  /// The kind of event.
  enum class Kind { up, message, down };
  Kind kind = Kind::down;
  Rank peer = -1;                    ///< the peer's rank in the allow-list
  std::vector<std::byte> message{};  ///< the message; empty for other kinds
  std::string reason{};              ///< reason why the channel is down; empty for other kinds
};

/// A message that is to be sent.
struct ChannelMessage {
  std::vector<std::byte> head{};  ///< bytes, which are handed over
  /// Bytes that follow the head, which several messages may share.
  SharedBytes body{};

  /// Bytes of the message.
  std::size_t size() const { return head.size() + body.size(); }
};

/// Options of a site's channels: its key, its peers' addresses, its timeouts.
struct ChannelOptions {
  /// Own key and the list. A peer without an address is one that dials; several addresses, with
  /// spaces between them, are tried in turn.
  Security security;
  Rank rank = 0;  ///< this site's rank in the list
  /// HOST:PORT where to listen, or several with spaces between them; empty: the addresses of the
  /// own line, and nowhere where that has none.
  std::string bind{};
  std::string source{};  ///< numeric local addresses to dial from; empty: as the system chooses
  std::size_t max_message_bytes = 0;  ///< longest message; a longer one ends the channel
  std::size_t max_queued_bytes = 0;   ///< most bytes that wait for one peer; at least one message
  std::chrono::milliseconds timeout{10'000};  ///< longest silence of a peer, 100 ms at least
  /// How long a peer that broke a rule of the wire is not let in.
  std::chrono::milliseconds offence_pause{30'000};
  /// How long the destructor may take to send queued messages.
  std::chrono::milliseconds close_timeout{1'000};
};

/// Why a channel is down.
enum class ChannelTrouble {
  none,          ///< it is up, or nothing was tried yet
  lost,          ///< the connection ended, or nothing was heard
  left,          ///< the peer said goodbye
  closed,        ///< `close` was called
  offence,       ///< the peer broke a rule of the wire
  revoked,       ///< the list trusts it no more
  unreachable,   ///< no process answers at its address
  awaited,       ///< there is no address for it: it is to dial, and has not yet
  unanswered,    ///< it lets this site connect, and does not answer
  not_admitted,  ///< the peer's list does not admit this site's key
  other_key,     ///< the process at the peer's address does not have the key of the list
};

/// Traffic to and from one peer since the Channels were made.
struct ChannelTraffic {
  Rank peer = -1;
  bool up = false;
  std::uint64_t bytes_sent = 0;      ///< bytes of messages that went out whole
  std::uint64_t bytes_received = 0;  ///< bytes of messages that `poll` gave
  /// Bytes that came over the present channel, also of the message that is not whole yet.
  std::uint64_t bytes_arrived = 0;
  std::uint64_t ups = 0;
  std::uint64_t offences = 0;  ///< times that the peer broke a rule of the wire
  ChannelTrouble trouble = ChannelTrouble::none;
  std::string reason{};  ///< the trouble in words
  std::string key{};     ///< key that the peer proved last, as text; "" before the first time
  bool one_connection = false;  ///< the last channel had one connection for both directions
  bool contested = false;       ///< it is up, and another process with the peer's key is there too
};

/// A key that is not listed, and was not let in.
struct RefusedKey {
  std::string key;      ///< the public key, as text
  std::string address;  ///< the last host that offered the key
  std::uint64_t times = 0;
};

/// Keys that were not let in.
struct RefusedKeys {
  std::uint64_t times = 0;  ///< refusals of all keys, since the object began
  /// Keys refused since the list changed, the newest last; of many, only the newest.
  std::vector<RefusedKey> latest;
};

/// Connections that have not proved a listed key.
struct Strangers {
  std::size_t waiting = 0;  ///< connections without a proof at present
  /// Most such connections at once, beside those from peers' addresses; 0: it listens nowhere.
  std::size_t room = 0;
  std::uint64_t cut = 0;   ///< connections that were ended to make room for others
  std::uint64_t left = 0;  ///< connections that ended otherwise, without a proof
  /// Properties of this host that make the room smaller than it should be, and the way out; lines
  /// for the operator.
  std::vector<std::string> shortages{};
};

class Channels {
 public:
  virtual ~Channels() = default;

  /// "10.0.0.1:9001"; of several with spaces between them; "" where it listens nowhere.
  virtual std::string address() const = 0;
  /// Queues a copy. Fault::peer_lost when the channel is down; Fault::backlog when the peer takes
  /// nothing and its queue is full; Fault::malformed for a message longer than max_message_bytes.
  virtual Status send(Rank peer, std::span<const std::byte> message) = 0;
  /// Queues the message as send does, without a copy where the channels are over a network. Over
  /// ZeroMQ one with a body is not queued twice: while the same bytes, not equal ones, wait with an
  /// equal head, nothing happens. A protocol that says again what may be lost so costs a slow link
  /// nothing.
  virtual Status hand_over(Rank peer, ChannelMessage message);
  /// Shares a message that poll gave, so that its memory may serve for another one once nobody
  /// needs it.
  virtual SharedBytes keep(std::vector<std::byte> message) const { return message; }
  /// The next event, or Fault::deadline. Fault::io when the sockets failed: nothing comes any more.
  virtual Result<ChannelEvent> poll(Deadline deadline) = 0;
  /// Ends the channel to a peer that broke a rule; it is tried again after `pause`.
  virtual void close(Rank peer, std::chrono::milliseconds pause) = 0;
  /// All peers that are listed, and the latest that were, by rank. Behind them, under rank -1, what
  /// was sent to all others that were.
  virtual std::vector<ChannelTraffic> traffic() const = 0;
  /// Keys that tried, and are on no list.
  virtual RefusedKeys refused_keys() const = 0;
  /// Connections without a proof, and the room for them.
  virtual Strangers strangers() const = 0;
};

/// Over ZeroMQ, encrypted: only listed keys are heard (docs/security.md). Throws Error for a
/// refused setting; Fault::io when the address cannot be bound, Fault::unexpected when strangers
/// are let in (admission_probe.h).
Result<std::unique_ptr<Channels>> make_channels(const ChannelOptions& options);

}  // namespace sotto
