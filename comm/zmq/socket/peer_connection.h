// A socket that connects to one peer's listener, and what becomes of its attempts.
//
// In plain text there is one attempt: who published an address listens there. With keys the peer
// may come later, be busy, or refuse: attempts are repeated, with growing pauses, until the first
// that the peer takes; a connection that broke afterwards has lost frames, and is not replaced. Nor
// is a refusal the end: CurveZMQ does not authenticate it, so that anybody on the way can say it.
//
// Thread safety: one thread. Ownership: its sockets; the context must outlive it.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include <zmq.hpp>

#include <sotto/comm/deadline.h>
#include <sotto/comm/security.h>

#include "monitor.h"

namespace sotto::internal {

/// Ourselves and the peer that we expect.
struct CurveClient {
  KeyPair own;
  PublicKey server;
};

class Dialer {
 public:
  Dialer(zmq::context_t& context, std::string endpoint, std::optional<CurveClient> curve);

  zmq::socket_t& socket() { return socket_; }
  /// Readable when there may be news; null when there will be none.
  zmq::socket_t* monitor() { return watching() ? &monitor_->socket() : nullptr; }
  /// The peer has taken us; unknown in plain text, where it always says true.
  bool met() const { return met_; }
  /// Why the last attempt failed; empty when none did.
  const std::string& reason() const { return reason_; }
  /// When the next attempt is due, if one is.
  std::optional<Deadline::Clock::time_point> next_attempt() const { return next_attempt_; }

  /// Takes in what happened, and tries again when that is due. True when the socket is a new one;
  /// what the old one held is gone.
  bool look();
  void close();

 private:
  bool watching() const { return monitor_ && !met_; }
  void dial();
  void note(const SocketEvent& event);

  zmq::context_t& context_;
  const std::string endpoint_;
  const std::optional<CurveClient> curve_;
  zmq::socket_t socket_;
  std::unique_ptr<SocketMonitor> monitor_;
  bool met_ = false;
  std::string reason_;
  std::chrono::milliseconds pause_;
  std::optional<Deadline::Clock::time_point> next_attempt_;
};

}  // namespace sotto::internal
