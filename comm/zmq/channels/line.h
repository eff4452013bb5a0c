// One encrypted connection to a peer's listener: made once, and over when it breaks. Who wants
// another makes another line.
//
// Thread safety: one thread. Ownership: its sockets; the context must outlive it.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include <zmq.hpp>

#include <sotto/comm/channels.h>
#include <sotto/comm/security.h>

#include "../socket/monitor.h"

namespace sotto::internal {

class Line {
 public:
  enum class State { opening, open, broken };

  /// Begins to connect to `endpoint`, where only the holder of `server` can answer. Throws
  /// zmq::error_t, e.g. when there are no descriptors left.
  Line(zmq::context_t& context, const std::string& endpoint, const KeyPair& own,
       const PublicKey& server);

  /// Takes in what happened. Open means that both sides have proved their keys.
  State look();
  /// Why it broke.
  ChannelTrouble trouble() const { return trouble_; }
  const std::string& reason() const { return reason_; }

  /// Hands a message over; false when it does not take one now. Requires that it is open.
  bool send(std::span<const std::byte> message);
  bool writable();
  /// What it took is still sent, for so long at most, after its destruction.
  void linger(int milliseconds) { socket_.set(zmq::sockopt::linger, milliseconds); }

  zmq::socket_t& socket() { return socket_; }
  /// Readable when there is something to look at.
  zmq::socket_t& monitor() { return monitor_.socket(); }

 private:
  void note(const SocketEvent& event);

  const std::string endpoint_;
  zmq::socket_t socket_;
  SocketMonitor monitor_;
  State state_ = State::opening;
  ChannelTrouble trouble_ = ChannelTrouble::none;
  std::string reason_;
};

}  // namespace sotto::internal
