// What befalls a socket's connections, as events.
//
// Thread safety: one thread, the socket's. Ownership: owns its end of the line; must be destroyed
// before the socket.
#pragma once

#include <cstdint>
#include <optional>

#include <zmq.hpp>

namespace sotto::internal {

struct SocketEvent {
  int kind = 0;            ///< ZMQ_EVENT_…
  std::int32_t value = 0;  ///< a connection's number, or what the kind says
};

class SocketMonitor {
 public:
  /// Begins to watch `socket` for the kinds in `kinds`. Throws zmq::error_t.
  SocketMonitor(zmq::context_t& context, zmq::socket_t& socket, int kinds);
  /// Stops the events first: ZeroMQ's I/O thread would wait for ever for somebody to take one.
  ~SocketMonitor();
  SocketMonitor(const SocketMonitor&) = delete;
  SocketMonitor& operator=(const SocketMonitor&) = delete;

  /// The next event, if one is there.
  std::optional<SocketEvent> next();
  /// Becomes readable with an event.
  zmq::socket_t& socket() { return line_; }

 private:
  void* watched_;  ///< ZeroMQ's own handle, which stays where it is
  zmq::socket_t line_;
};

}  // namespace sotto::internal
