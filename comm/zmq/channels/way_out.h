// On which connection a side of a channel speaks: the one that it opened itself, by its Dialler, or
// the one that the peer opened, where it answers.
//
// Thread safety: none; the caller locks. Ownership: its connection; options, context and listener
// must outlive it.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include <zmq.hpp>

#include <sotto/comm/channels.h>

#include "../socket/listener.h"
#include "../socket/peer_connection.h"
#include "channel_wire.h"
#include "dialler.h"

namespace sotto::internal {

class WayOut {
 public:
  WayOut(const ChannelOptions& options, zmq::context_t& context, Listener& listener)
      : listener_(listener), dialler_(options, context) {}

  /// This side's own way to the peer, which it may have beside the one on which it answers.
  Dialler& dialler() { return dialler_; }
  const Dialler& dialler() const { return dialler_; }

  /// From now on this side speaks on the listener's connection of this route.
  void answer(std::string route) { route_ = std::move(route); }
  /// Whether it does so.
  bool answering() const { return route_.has_value(); }
  /// It answers no more.
  void stop_answering() { route_.reset(); }
  /// Speaks nowhere; messages that its own connection took are still sent, for at most this long.
  void abandon(int linger_ms) {
    dialler_.abandon(linger_ms);
    stop_answering();
  }

  /// Sends a message, now or not at all: false.
  bool send(const channel_wire::Message& message);
  /// Whether the connection takes a message now; the listener tells only when it does not take one.
  bool writable();

 private:
  Listener& listener_;
  Dialler dialler_;
  std::optional<std::string> route_;  ///< route of the peer's connection; none: it does not answer
};

}  // namespace sotto::internal
