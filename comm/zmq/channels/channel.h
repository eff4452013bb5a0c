// The channel to one peer: a way out and a way in, and what has been said on them.
//
// A side that can dial the other speaks on the connection that it opens. One that cannot, because
// its list has no address of the peer or the address does not answer, speaks on the connection that
// the peer opened: then this one connection carries both directions. Which way it takes is each
// side's own affair, as each listens to both; a side changes its way only while the channel is
// down.
//
// Each side greets on its way out, with a session number drawn for it, and accepts the greeting
// that came in. A side is up when it has accepted the other's latest
// greeting and the other has accepted its own: then both mean the same pair of sessions. What comes
// before the acceptance of the present greeting belongs to an older pair, and is dropped. A side
// that goes down ends its connections, so that the other notices at once.
//
// A greeting while the pair is up comes from a rival: a process that was started again, or a second
// holder of the key. It waits until the pair falls, and is its side's next connection then. A
// process that was started again has to wait no longer than until the end of the one before it
// shows; a copy of the key elsewhere gets nowhere.
//
// Thread safety: none; the caller locks. What touches sockets is called from their thread only:
// hear, hear_back, ended, work, and the accessors for polling. The rest only says what that thread
// has to do. Ownership: its connection; events and the listener are the caller's.
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
#include "dialler.h"
#include "frame_quota.h"
#include "message_receiver.h"
#include "message_sender.h"

namespace sotto::internal {

/// What the channels of a site share.
struct ChannelContext {
  const ChannelOptions& options;
  zmq::context_t& context;
  Listener& listener;
  ChannelEvents& events;
};

class Channel {
 public:
  /// The clock of the thread that works: it stands still while that thread does, so that
  /// silence while nobody listened is not held against the peer.
  using Time = Deadline::Clock::time_point;

  Channel(const ChannelContext& context, Rank peer)
      : context_(context), traffic_{.peer = peer}, dialler_(context.options, context.context) {}

  // From any thread.

  /// The peer's line of the list, or that it has none any more. A peer with another key is another.
  void follow_line(const std::optional<TrustedPeer>& line);
  /// True when the peer is listed with this key, as text.
  bool has_key(std::string_view key) const { return dialler_.has_key(key); }
  /// Sources of the addresses that were found for the peer so far.
  std::set<Source> sources() const { return dialler_.sources(); }
  /// Counts the changes of sources().
  std::uint64_t sources_version() const { return dialler_.sources_version(); }
  Status send(std::span<const std::byte> message);
  /// Down, and tried again after `pause`; nothing more of the peer is delivered.
  void close(Time now, std::chrono::milliseconds pause);
  void delivered(std::size_t message_bytes) { traffic_.bytes_received += message_bytes; }
  ChannelTraffic traffic() const;

  // From the thread that works.

  /// A message of a connection that proved this peer's key.
  void hear(const Incoming& incoming, Time now);
  /// Takes what the peer says on the connection that this side opened. True when nothing is left.
  bool hear_back(Time now);
  /// True when the listener's connection with this number is the peer's.
  bool uses(int connection) const {
    return (in_ && in_->connection == connection) ||
           (rival_ && rival_->in.connection == connection);
  }
  /// That connection ended.
  void ended(int connection, Time now);
  /// All that is due. `drained`: nothing is left to be heard.
  void work(Time now, bool drained);
  /// Sends what is queued, and a goodbye behind it.
  void leave() { leaving_ = true; }
  /// Nothing is left that leave() waits for.
  bool left() const { return left_ || !up() || ending_; }
  /// Drops the connection; what it took is sent for so long at most.
  void abandon(int linger_ms);

  PeerConnection* connection() { return dialler_.connection(); }
  /// Something goes out as soon as the connection takes it.
  bool pending(Time now) const;
  /// It goes out on the connection that the peer opened.
  bool answering() const { return answering_; }

 private:
  /// What the peer has said, on the connection that it opened or on this side's.
  struct In {
    enum class Phase {
      silent,   ///< its greeting
      stale,    ///< that it accepts a greeting that is not ours any more
      current,  ///< that it accepts our present one
    };
    std::string route;
    int connection = -1;  ///< −1: ended, or this side's own
    std::string key{};    ///< that the peer proved
    Time since{};         ///< it greeted
    bool own = false;     ///< on the connection that this side opened
    std::uint64_t session = 0;
    Phase phase = Phase::silent;
  };
  /// While the channel is up.
  struct Pair {
    Pair(const ChannelOptions& options, Time now)
        : in(options.max_message_bytes),
          out(options.timeout),
          quota(now),
          heard(now),
          receipted(now) {}
    MessageReceiver in;
    MessageSender out;
    FrameQuota quota;
    Time heard;
    Time receipted;
    Time chunk_heard{};
    Deadline::Clock::duration chunk_gap{};  ///< between the last two chunks of a message
  };
  struct Rival {
    In in;
    Time since;
  };
  struct Ending {
    Time since;
    ChannelTrouble trouble;
    std::string reason;
  };

  bool up() const { return pair_.has_value(); }
  bool open() const {
    return !ending_ && (answering_ ? in_ && in_->connection >= 0 : dialler_.open());
  }
  bool welcome(Time now) const { return !dialler_.keys().empty() && now >= barred_until_; }
  bool may_answer(Time now) const;
  bool writable();
  bool contested() const;
  bool receipt_due(Time now) const;
  /// What the peer's messages cost that wait here; all that it may have while its quota is spent.
  std::uint64_t held(Time now) const;
  /// A frame of the pair's; false: it was one too many.
  bool within_quota(const channel_wire::Message& message, Time now);
  bool say(const channel_wire::Message& message);

  void greet(const Incoming& incoming, std::uint64_t session, Time now);
  void let_in(In in, Time now);
  void heed(const channel_wire::Message& message, Time now);
  void heed_accept(std::uint64_t session, Time now);
  void heed_chunk(const channel_wire::Chunk& chunk, Time now);
  void rise(Time now);
  void fall(ChannelTrouble trouble, const std::string& reason);
  void end_soon(Time now, ChannelTrouble trouble, std::string reason);
  void punish(const std::string& what, Time now);
  void hang_up(Time now);
  void drop_connection(Time now, ChannelTrouble trouble, std::string reason);
  /// Nothing is said any more on the way out, which is gone.
  void forget_way_out();

  void use_keys(std::vector<PublicKey> keys);
  void begin_answer(Time now);
  void greet_back(std::uint64_t session, Time now);
  void look_at_connection(Time now);
  void dial(Time now);
  void look_at_meeting(Time now);
  void judge_silence(Time now);
  void speak(Time now);
  void speak_chunks(Time now);

  const ChannelContext context_;
  ChannelTraffic traffic_;
  Dialler dialler_;
  Time barred_until_;

  bool greeted_back_ = false;   ///< the peer spoke on it
  bool answering_ = false;      ///< speaks on the connection that the peer opened
  std::uint64_t session_ = 0;   ///< of our connection; 0 without one
  bool greeted_ = false;        ///< on our connection
  std::uint64_t accepted_ = 0;  ///< the peer's session that we accepted last on our connection

  std::optional<In> in_;
  std::optional<Rival> rival_;
  std::optional<Pair> pair_;
  std::optional<Ending> ending_;  ///< of the pair
  Time unpaired_since_;           ///< both connections are there, and the pair is not
  bool hang_up_ = false;          ///< due
  bool leaving_ = false;
  bool left_ = false;
};

}  // namespace sotto::internal
