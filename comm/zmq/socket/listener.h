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
#include <optional>
#include <string>
#include <vector>

#include <zmq.hpp>

#include <sotto/comm/deadline.h>
#include <sotto/comm/security.h>

#include "listening_socket.h"
#include "monitor.h"

namespace sotto::internal {

struct Incoming {
  std::string route;    ///< the same for all messages of a connection, and no other's meanwhile
  int connection = -1;  ///< the connection's number while it lives; numbers are reused
  std::string key;      ///< the sender's public key, as text; "" in plain text
  zmq::message_t body;
};

class Listener {
 public:
  struct Limits {
    std::size_t message_bytes = 0;
    std::size_t connections = 0;  ///< while there are so many, nobody else gets in
  };

  /// Binds `endpoint` ("tcp://127.0.0.1:*" takes a free port). With `own` it is guarded: the
  /// context needs an Authenticator. Throws zmq::error_t when the system refuses.
  Listener(zmq::context_t& context, const std::string& endpoint, const Limits& limits,
           const KeyPair* own);

  /// "tcp://127.0.0.1:41234"
  const std::string& endpoint() const { return endpoint_; }

  /// The next message, if one is there. Messages of several parts are dropped: ours have one.
  std::optional<Incoming> receive();
  /// The connections that ended since the last call. All that they sent is received, or about to
  /// be.
  std::vector<int> ended();
  /// True while the connection is there; ask right after ended().
  bool alive(int connection) const { return connections_.contains(connection); }
  /// Ends a connection, unless that has happened since the last call of ended().
  void cut(int connection);
  /// Connections that were there at the last call of ended(), and came before `time`.
  std::vector<int> older_than(Deadline::Clock::time_point time) const;
  /// How many connections there were at the last call of ended().
  std::size_t connections() const { return connections_.size(); }
  /// Answers a message; dropped when its sender is gone, or takes none of many answers.
  void reply(const std::string& route, zmq::message_t body);

  zmq::socket_t& socket() { return router_; }
  zmq::socket_t& monitor() { return monitor_.socket(); }

 private:
  void look();

  const std::size_t most_connections_;
  ListeningSocket listening_;
  zmq::socket_t router_;
  SocketMonitor monitor_;
  std::string endpoint_;
  std::map<int, Deadline::Clock::time_point> connections_;  ///< since when
  std::vector<int> ended_;                                  ///< since the last call of ended()
};

}  // namespace sotto::internal
