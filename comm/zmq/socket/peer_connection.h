// A connection that this process opens to a peer's listener.
//
// In plain text there is one attempt: the node that published an address listens there. With keys a
// peer may come later, be busy, or refuse. A refusal is not the end: CurveZMQ does not authenticate
// it, so that anybody on the way can say it. A connection of one direction repeats its attempts,
// with growing pauses, until the first that the peer takes; one of both directions is of no more
// use once it is broken. A connection that broke after it was open has lost messages, and is never
// replaced.
//
// Thread safety: one thread. Ownership: its sockets; the context must outlive it.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <zmq.hpp>

#include <sotto/comm/channels.h>
#include <sotto/comm/deadline.h>
#include <sotto/comm/trust/keys.h>

#include "connection_end.h"
#include "monitor.h"

namespace sotto::internal {

/// Reason for cutting the connection of a peer that has left the list.
inline constexpr const char* kRevoked = "the list of peers does not trust it any more";

/// The own keys, and the peer's expected one.
struct CurveClient {
  KeyPair own;
  PublicKey server;
};

/// The sides that speak on a connection.
enum class Directions {
  /// Only this side. Attempts are repeated; once it is open, it is watched no more.
  one,
  /// The peer speaks on it, too: what has come is received after its end as well. There is one
  /// attempt, and nothing may be sent before it is open.
  both,
};

struct ConnectionOptions {
  std::string endpoint;
  std::size_t max_message_bytes = 0;
  /// Only the holder of its `server` can answer; without it the connection is in plain text.
  std::optional<CurveClient> curve{};
  Directions directions = Directions::both;
  std::string_view participant;  ///< the word for both ends in reasons, "node" or "site"
};

class PeerConnection {
 public:
  /// Open: with keys, both sides have proved theirs.
  enum class State { opening, open, broken };
  using Time = Deadline::Clock::time_point;

  /// Begins to connect. Throws zmq::error_t, e.g. when there are no descriptors left.
  PeerConnection(zmq::context_t& context, ConnectionOptions options);

  /// Takes in what happened, and tries again when that is due. In plain text it is always open. One
  /// of one direction is watched only until it is open: its end shows as the end of what the peer
  /// sends.
  State look();
  bool open() const { return state_ == State::open; }
  /// Whether the open connection is ending, so that look() is to be called again within kEndLook:
  /// it is broken once receive() finds all that came on it.
  bool ending() const { return end_.has_value(); }
  /// A process took the connection, whatever it is.
  bool reached() const { return reached_; }
  /// Attempts so far. What the socket of an earlier one held is gone.
  int attempts() const { return attempts_; }
  /// The time of the next attempt, if one is due.
  std::optional<Time> next_attempt() const { return next_attempt_; }
  /// Why the last attempt failed, or the connection ended; none and "" when nothing did.
  ChannelTrouble trouble() const { return trouble_; }
  const std::string& reason() const { return reason_; }

  /// Hands a message over; false when it does not take one now.
  bool send(std::span<const std::byte> message);
  bool send(zmq::message_t message);
  /// The next message that the peer sent on this connection; false when none is there.
  bool receive(zmq::message_t& message);
  bool writable();
  /// Sets for how long messages that it took are still sent after its end.
  void linger(int milliseconds) { socket_.set(zmq::sockopt::linger, milliseconds); }
  void close();

  zmq::socket_t& socket() { return socket_; }
  /// Readable when look() may have news; null when there will be none.
  zmq::socket_t* monitor() { return watched() ? &monitor_->socket() : nullptr; }

 private:
  bool both() const { return options_.directions == Directions::both; }
  bool watched() const { return monitor_ && (both() || !open()); }
  void connect();
  void note(const SocketEvent& event);
  void fail(const SocketEvent& event);
  void explain(const SocketEvent& event);

  zmq::context_t& context_;
  const ConnectionOptions options_;
  zmq::socket_t socket_;
  std::unique_ptr<SocketMonitor> monitor_;
  State state_ = State::opening;
  bool reached_ = false;
  int descriptor_ = -1;           ///< the connection's, once it was reached
  std::optional<OpenFile> file_;  ///< the file that it was then
  std::optional<ConnectionEnd> end_;
  ChannelTrouble trouble_ = ChannelTrouble::none;
  std::string reason_;
  int attempts_ = 0;
  std::chrono::milliseconds pause_;
  std::optional<Time> next_attempt_;
};

}  // namespace sotto::internal
