// The handshake of a channel: what both sides have said before it is up, and which process is let
// in.
//
// Each side greets on its way out, with a session number drawn for it, and accepts the greeting
// that came in. The handshake is complete when this side has accepted the peer's latest greeting
// and the peer has accepted this side's: then both mean the same pair of sessions. What comes
// before the acceptance of the present greeting belongs to an older pair.
//
// A greeting while the channel is up comes from a rival: a process that was started again, or a
// second holder of the key. The last one waits until the channel falls, and may be let in then.
//
// Thread safety: none. Pure: no socket and no clock; it says which connections the caller has to
// cut.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <sotto/comm/deadline.h>

#include "channel_wire.h"

namespace sotto::internal {

/// A greeting of the peer, and where it came in.
struct PeerGreeting {
  using Time = Deadline::Clock::time_point;

  std::string route{};  ///< route of the listener's messages; none on this side's own connection
  /// The listener's connection; kNoConnection: it ended, or is this side's own.
  int connection = kNoConnection;
  std::string key{};  ///< key that the peer proved
  Time since{};       ///< time of the greeting
  bool own = false;   ///< it came on the connection that this side opened
  std::uint64_t session = 0;

  static constexpr int kNoConnection = -1;
};

class Handshake {
 public:
  /// A side that speaks on a route of the listener.
  enum class Speaker {
    peer,      ///< the process that was let in
    rival,     ///< the process that waits
    stranger,  ///< a process that has not greeted
  };

  // This side's way out.

  /// There is a way out, or will be: it greets with this session, which is not 0. Requires a way
  /// out that is closed.
  void open(std::uint64_t session) { session_ = session; }
  /// The way out is gone, and what was said on it. What the peer said there is void; what it said
  /// elsewhere accepted a greeting that does not count any more.
  void close();
  /// The next message on the way out: the greeting, then the acceptance of the peer's; empty when
  /// all is said.
  std::optional<channel_wire::Message> due() const;
  /// Notes that the message was sent.
  void sent();

  // The peer's.

  /// Lets in the peer that sent this greeting, in place of the process before.
  void admit(PeerGreeting greeting);
  /// A greeting while the channel is up: its sender waits as the rival. Returns the connection of
  /// the rival before, which is to be cut; kNoConnection: there was none.
  int challenge(PeerGreeting greeting);
  /// The peer accepts the greeting with this session. False: it has accepted the present one
  /// already, which is against the rules.
  bool accept(std::uint64_t session);
  /// A rival has spoken: what it accepted may be an older greeting than the present one.
  void rival_spoke();
  /// The peer has greeted on the connection that this side opened, whether it was let in or not.
  void note_reply() { replied_ = true; }
  /// Whether that has happened since the way out was opened.
  bool replied() const { return replied_; }
  /// A connection that uses() names has ended. True when it was the peer's: what it said before is
  /// heard until expel(). False when it was the rival's, which is gone.
  bool ended(int connection);
  /// The peer is in no more. Returns its connection, which is to be cut; kNoConnection: there is
  /// none.
  int expel();
  /// Lets the rival in, in place of the peer. Requires that there is one.
  void admit_rival();
  /// The rival waits no more. Returns its connection, as expel() does.
  int dismiss_rival();

  // How things stand.

  /// Whether both sides have greeted and accepted.
  bool complete() const;
  /// The peer was let in, and what it says now is meant for an older session.
  bool stale() const { return peer_ && peer_->acceptance == Acceptance::stale; }
  /// The side that speaks on the route.
  Speaker speaker(std::string_view route) const;
  /// True when the listener's connection with this number is the peer's or the rival's.
  bool uses(int connection) const;
  /// The greeting that was let in; null: none.
  const PeerGreeting* peer() const { return peer_ ? &peer_->greeting : nullptr; }
  /// The rival's greeting; null: none waits.
  const PeerGreeting* rival() const { return rival_ ? &rival_->greeting : nullptr; }
  /// The listener's connection on which the peer was let in; kNoConnection: it was not, has ended,
  /// or is this side's own.
  int connection() const { return connection_of(peer_); }

 private:
  /// The acceptance of a side that greeted.
  enum class Acceptance {
    none,
    stale,    ///< it accepted a greeting that is not this side's any more
    current,  ///< it accepted this side's present greeting
  };
  struct Greeted {
    PeerGreeting greeting;
    Acceptance acceptance = Acceptance::none;
  };

  static int connection_of(const std::optional<Greeted>& side) {
    return side ? side->greeting.connection : PeerGreeting::kNoConnection;
  }

  std::uint64_t session_ = 0;   ///< session of the way out; 0 without one
  bool greeted_ = false;        ///< this side has greeted on the way out
  std::uint64_t accepted_ = 0;  ///< the last session of the peer that was accepted on the way out
  bool replied_ = false;
  std::optional<Greeted> peer_;
  std::optional<Greeted> rival_;
};

}  // namespace sotto::internal
