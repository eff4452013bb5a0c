#include "monitor.h"

#include <atomic>
#include <cstring>

#include <fmt/format.h>

#include "socket.h"

namespace sotto::internal {

SocketMonitor::SocketMonitor(zmq::context_t& context, zmq::socket_t& socket, int kinds)
    : watched_(socket.handle()), line_(context, zmq::socket_type::pair) {
  static std::atomic<std::uint64_t> count{0};  // names are a context's
  const auto name = fmt::format("inproc://monitor-{}", ++count);
  if (zmq_socket_monitor(socket.handle(), name.c_str(), kinds) != 0) {
    throw zmq::error_t();
  }
  // Unbounded: a full monitor would stop ZeroMQ's I/O thread.
  line_.set(zmq::sockopt::rcvhwm, 0);
  line_.set(zmq::sockopt::linger, 0);
  line_.connect(name);
}

SocketMonitor::~SocketMonitor() { (void)zmq_socket_monitor(watched_, nullptr, 0); }

std::optional<SocketEvent> SocketMonitor::next() {
  zmq::message_t event;
  zmq::message_t endpoint;
  while (try_receive(line_, event)) {
    while (!try_receive(line_, endpoint)) {  // follows its event at once
    }
    std::uint16_t kind = 0;
    SocketEvent parsed;
    if (event.size() != sizeof kind + sizeof parsed.value) {
      continue;
    }
    std::memcpy(&kind, event.data(), sizeof kind);
    std::memcpy(&parsed.value, static_cast<const char*>(event.data()) + sizeof kind,
                sizeof parsed.value);
    parsed.kind = kind;
    return parsed;
  }
  return std::nullopt;
}

}  // namespace sotto::internal
