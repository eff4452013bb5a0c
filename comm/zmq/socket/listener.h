// A node's listening socket: what strangers and peers send it, and which connections ended.
//
// Peers are told apart by the route of their connection, which nobody else can have while it is
// there, though clients may choose it, and, with keys, by the key that the peer proved to have.
// That a connection ended is reported by the socket's monitor; both views meet in the connection's
// number.
//
// Thread safety: one thread. Ownership: owns its sockets; the context must outlive it.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <zmq.hpp>

#include <sotto/base/file_descriptor.h>
#include <sotto/comm/deadline.h>
#include <sotto/comm/trust/keys.h>

#include "connection_end.h"
#include "connection_limiter.h"
#include "listening_socket.h"
#include "monitor.h"

namespace sotto::internal {

struct Incoming {
  /// Equal for all messages of a connection, and different from other connections' at the time.
  std::string route;
  int connection = -1;  ///< the connection's number while it lives; numbers are reused
  std::string key;      ///< the sender's public key, as text; "" in plain text
  zmq::message_t body;
};

class Listener {
 public:
  /// Twice what a client of the store may await, as ZeroMQ counts what it has sent in steps of half
  /// of this, and room for one.
  static constexpr int kHeldReplies = 24;

  struct Limits {
    std::size_t message_bytes = 0;
    std::size_t connections = 0;  ///< most connections; nobody else gets in until one ends
    /// Room for connections that have sent nothing with a listed key, and how it is shared out;
    /// none: the first to come have it.
    std::optional<ConnectionLimiter::Limits> limiter{};
    /// Messages to one connection that wait; more are dropped by reply, and not taken by send.
    int held_replies = kHeldReplies;
  };

  /// Binds `endpoint` ("tcp://127.0.0.1:*" takes a free port). With `own` it is guarded: the
  /// context needs an Authenticator. Throws zmq::error_t when the system refuses.
  Listener(zmq::context_t& context, const std::string& endpoint, const Limits& limits,
           const KeyPair* own)
      : Listener(context, std::vector<std::string>{endpoint}, limits, own) {}
  /// Binds several endpoints, or none: then nobody ever connects.
  Listener(zmq::context_t& context, const std::vector<std::string>& endpoints, const Limits& limits,
           const KeyPair* own);

  /// "tcp://127.0.0.1:41234"; of several the first, of none "".
  std::string endpoint() const { return endpoints_.empty() ? "" : endpoints_.front(); }
  const std::vector<std::string>& endpoints() const { return endpoints_; }

  /// The next message, if one is there. Messages of several parts are dropped: ours have one.
  std::optional<Incoming> receive();
  /// The connections that ended since the last call: receive() finds all that came on them, or has
  /// given it.
  std::vector<int> ended();
  /// Whether a connection is ending, so that ended() is to be called again within kEndLook, though
  /// nothing becomes readable.
  bool ending() const { return !endings_.empty(); }
  /// True until ended() has named the connection; ask right after it.
  bool alive(int connection) const {
    return connections_.contains(connection) || endings_.contains(connection);
  }
  /// Ends a connection, unless that has happened since the last call of ended().
  void cut(int connection);
  /// Connections that were there at the last call of ended(), and came before `time`.
  std::vector<int> older_than(Deadline::Clock::time_point time) const;
  /// How many connections there were at the last call of ended().
  std::size_t connections() const { return connections_.size(); }
  /// Answers a message; dropped when its sender is gone, or takes none of many answers.
  void reply(const std::string& route, zmq::message_t body);
  /// Hands over a message to the sender of another; false when it does not take one now, or is
  /// gone, which ended() tells.
  bool send(const std::string& route, zmq::message_t body);
  /// Sets for how long messages that it took are still sent after its end.
  void linger(int milliseconds) { router_.set(zmq::sockopt::linger, milliseconds); }

  // Without Limits::limiter these do nothing.

  /// Sources of the addresses of peers, which have room of their own.
  void expect(std::set<Source> listed);
  /// Until the first call of keep_order() only connections of this host get in: a crowd is not to
  /// keep out what tries the socket.
  void admit_own_host();
  /// Ends surplus connections, and tells the kernel which sources to drop. Requires a call of
  /// ended() before.
  void keep_order();
  /// The time when keep_order() has something to do by itself.
  std::optional<Deadline::Clock::time_point> next_order() const {
    return limiter_ ? limiter_->next_change() : std::nullopt;
  }
  /// Null without Limits::limiter.
  const ConnectionLimiter* limiter() const { return limiter_ ? &*limiter_ : nullptr; }

  zmq::socket_t& socket() { return router_; }
  zmq::socket_t& monitor() { return monitor_.socket(); }

 private:
  void look();
  void note_end(int connection);
  bool full() const { return connections_.size() >= most_connections_; }

  const std::size_t most_connections_;
  std::optional<ConnectionLimiter> limiter_;
  FileDescriptor spare_;  ///< spare descriptor, to cut connections where no other is left
  std::vector<std::unique_ptr<ListeningSocket>> listening_;
  zmq::socket_t router_;
  SocketMonitor monitor_;
  std::vector<std::string> endpoints_;
  struct Connection {
    Deadline::Clock::time_point since;
    std::optional<OpenFile> file;
  };
  std::map<int, Connection> connections_;  ///< connections that are there, by their numbers
  std::map<int, ConnectionEnd> endings_;   ///< ends of which something may still come
  std::vector<int> ended_;  ///< connections that ended since the last call of ended()
};

}  // namespace sotto::internal
