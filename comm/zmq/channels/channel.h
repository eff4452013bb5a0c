// The channel to one peer: a way out and a way in, and what has been said on them.
//
// A side that can dial the other speaks on the connection that it opens. One that cannot, because
// its list has no address of the peer or the address does not answer, speaks on the connection that
// the peer opened: then this one connection carries both directions. Which way it takes is each
// side's own affair, as each listens to both; a side changes its way only while the channel is
// down.
//
// A side is up when it has a way out and the handshake (handshake.h) is complete; what comes before
// that belongs to an older pair of sessions, and is dropped. A side that goes down ends its
// connections, so that the other notices at once.
//
// A rival, which greets while the channel is up, waits until it falls, and is the next to be let
// in. A process that was started again has to wait no longer than until the end of the one before
// it shows; a copy of the key elsewhere gets nowhere.
//
// Thread safety: none; the caller locks. What touches sockets is called from their thread only:
// notice_end, handle, handle_replies, ended, work, and the accessors for polling. The rest only
// says what that thread has to do. Ownership: its connection; events and the listener are the
// caller's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <zmq.hpp>

#include <sotto/comm/channels.h>

#include "../socket/listener.h"
#include "../socket/peer_connection.h"
#include "channel_events.h"
#include "channel_pair.h"
#include "frame_quota.h"
#include "handshake.h"
#include "way_out.h"

namespace sotto::internal {

/// Shared parts of all channels of a site.
struct ChannelContext {
  const ChannelOptions& options;
  zmq::context_t& context;
  Listener& listener;
  ChannelEvents& events;
  BytePool& pool;
};

class Channel {
 public:
  /// The clock of the thread that works: it stands still while that thread does, so that
  /// silence while nobody listened is not held against the peer.
  using Time = Deadline::Clock::time_point;

  /// The channel to `peer`, not yet listed. All that `context` names must outlive it.
  Channel(const ChannelContext& context, Rank peer)
      : context_(context),
        traffic_{.peer = peer},
        way_(context.options, context.context, context.listener) {}

  // From any thread.

  /// The peer's line of the list, or that it has none any more. A peer with another key is another.
  void follow_line(const std::optional<TrustedPeer>& line);
  /// True when the peer is listed with this key, as text.
  bool has_key(std::string_view key) const { return dialler().has_key(key); }
  /// Sources of the addresses that were found for the peer so far.
  std::set<Source> sources() const { return dialler().sources(); }
  /// Counts the changes of sources().
  std::uint64_t sources_version() const { return dialler().sources_version(); }
  /// Queues a message. Fault::peer_lost while the channel is down, Fault::malformed for one that is
  /// too long, Fault::backlog where too much waits already.
  Status send(ChannelMessage message);
  /// Down, and tried again after `pause`; nothing more of the peer is delivered.
  void close(Time now, std::chrono::milliseconds pause);
  /// Counts a message of this many bytes that the program has taken.
  void delivered(std::size_t message_bytes) { traffic_.bytes_received += message_bytes; }
  /// Counts of what the channel has carried, and its state.
  ChannelTraffic traffic() const;
  /// Whether the peer is not listed, and nothing is left of the channel but its counts.
  bool idle() const;

  // From the thread that works.

  /// Looks whether the connection that this side opened has ended. What came before is still to be
  /// handled.
  void notice_end(Time now);
  /// Handles a message of a connection that proved this peer's key.
  void handle(const Incoming& incoming, Time now);
  /// Handles what the peer says on the connection that this side opened. True when nothing is left.
  bool handle_replies(Time now);
  /// True when the listener's connection with this number is the peer's.
  bool uses(int connection) const { return handshake_.uses(connection); }
  /// Notes that the connection ended.
  void ended(int connection, Time now);
  /// All that is due. `drained`: nothing is left to be heard of what had come when ends were
  /// noticed.
  void work(Time now, bool drained);
  /// Sends what is queued, and a goodbye behind it.
  void leave() { leaving_ = true; }
  /// Nothing is left that leave() waits for.
  bool left() const { return left_ || !up() || ending_; }
  /// Drops the connection; messages that it took are still sent, for at most this long.
  void abandon(int linger_ms);

  /// The connection that this side opened, or opens; null: there is none.
  PeerConnection* connection() { return dialler().connection(); }
  /// Something goes out as soon as the connection takes it.
  bool pending(Time now) const;
  /// It goes out on the connection that the peer opened.
  bool answering() const { return way_.answering(); }
  /// The connection that this side opened is ending: see PeerConnection::ending.
  bool ending() const {
    return dialler().connection() != nullptr && dialler().connection()->ending();
  }

 private:
  /// The end of the pair, once all that has come is handled.
  struct Ending {
    Time since;
    ChannelTrouble trouble;
    std::string reason;
  };

  Dialler& dialler() { return way_.dialler(); }
  const Dialler& dialler() const { return way_.dialler(); }
  bool up() const { return pair_.has_value(); }
  bool has_way_out() const {
    return !ending_ && (answering() ? handshake_.connection() != PeerGreeting::kNoConnection
                                    : dialler().open());
  }
  bool welcome(Time now) const { return !dialler().keys().empty() && now >= barred_until_; }
  bool may_answer(Time now) const;
  bool contested() const;
  /// Cost of the peer's messages that wait here; all that it may have while its quota is spent.
  std::uint64_t held(Time now) const;
  /// A frame counts against the quota; false: it was one too many.
  static bool within(FrameQuota& quota, const Result<channel_wire::Message>& message, Time now);

  // Handling what came.
  void handle_greeting(const Incoming& incoming, std::uint64_t session, Time now);
  void handle_reply_greeting(std::uint64_t session, Time now);
  void handle_message(const Result<channel_wire::Message>& message, Time now);
  void act_on(const channel_wire::Message& message, Time now);
  void handle_chunk(const channel_wire::Chunk& chunk, Time now);
  /// The peer broke a rule: it waits for a while.
  void punish(const std::string& what, Time now);

  // Opening and closing: the way in, the way out, and the pair that both make.
  void admit(PeerGreeting greeting, Time now);
  void await_pair(Time now);
  void open_answer(Time now);
  /// Nothing is said any more on the way out, which is gone.
  void close_way_out();
  void drop_way_out(Time now, ChannelTrouble trouble, std::string reason);
  /// Up, if nothing lacks for it.
  void open_pair(Time now);
  /// Down, as far as anybody asks; close_connections does the rest.
  void close_pair(ChannelTrouble trouble, const std::string& reason);
  void close_pair_soon(Time now, ChannelTrouble trouble, std::string reason);
  /// Whether nothing more of the pair can come, or is waited for no longer.
  bool all_has_come(Time now) const;
  /// Ends both ways, and lets the rival in.
  void close_connections(Time now);
  /// Ends a connection of the listener, if it is one.
  void cut(int connection);

  // What is due without a message.
  void use_keys(std::vector<PublicKey> keys);
  void keep_way_out(Time now);
  void dial(Time now);
  void judge_handshake(Time now);
  void judge_silence(Time now);
  void send_due(Time now);

  const ChannelContext context_;
  ChannelTraffic traffic_;
  WayOut way_;
  Time barred_until_;

  Handshake handshake_;
  FrameQuota quota_{Time()};    ///< of the peer that was let in, over all its connections
  FrameQuota others_{Time()};   ///< of all else that shows its key, so that a copy costs it nothing
  FrameQuota replies_{Time()};  ///< of greetings on the connection that this side opened
  std::optional<ChannelPair> pair_;  ///< while the channel is up
  std::optional<Ending> ending_;     ///< end of the pair, once it is due
  Time unpaired_since_;     ///< time since which both connections are there, and the pair is not
  bool close_due_ = false;  ///< close_connections is to be called
  bool leaving_ = false;
  bool left_ = false;
};

}  // namespace sotto::internal
