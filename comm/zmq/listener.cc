#include "listener.h"

#include <cstring>

#include <fmt/format.h>

#include "wire.h"

namespace sotto::internal {
namespace {

constexpr const char* kMonitor = "inproc://listener-monitor";
/// Messages of one connection that ZeroMQ holds before it stops reading from the network.
constexpr int kHeldMessages = 4;

}  // namespace

void set_common_options(zmq::socket_t& socket, std::size_t max_message_bytes) {
  socket.set(zmq::sockopt::maxmsgsize, static_cast<std::int64_t>(max_message_bytes));
  socket.set(zmq::sockopt::linger, 0);
  socket.set(zmq::sockopt::handshake_ivl, 5000);
  socket.set(zmq::sockopt::ipv6, 1);
  // The kernel's keep-alive finds dead hosts. ZeroMQ's heartbeats would also cut off live ones that
  // take longer than the heartbeat for a message on a slow link.
  socket.set(zmq::sockopt::tcp_keepalive, 1);
  socket.set(zmq::sockopt::tcp_keepalive_idle, 10);
  socket.set(zmq::sockopt::tcp_keepalive_intvl, 5);
  socket.set(zmq::sockopt::tcp_keepalive_cnt, 3);
}

Listener::Listener(zmq::context_t& context, const BindAddress& address)
    : router_(context, zmq::socket_type::router), monitor_(context, zmq::socket_type::pair) {
  set_common_options(router_, zmq_wire::kMaxMessageBytes);
  router_.set(zmq::sockopt::rcvhwm, kHeldMessages);
  if (zmq_socket_monitor(router_.handle(), kMonitor, ZMQ_EVENT_ACCEPTED | ZMQ_EVENT_DISCONNECTED) !=
      0) {
    throw zmq::error_t();
  }
  // Unbounded: a full monitor would stop ZeroMQ's I/O thread.
  monitor_.set(zmq::sockopt::rcvhwm, 0);
  monitor_.set(zmq::sockopt::linger, 0);
  monitor_.connect(kMonitor);
  router_.bind(fmt::format("tcp://{}:*", address.host_part()));
}

std::string Listener::endpoint() const { return router_.get(zmq::sockopt::last_endpoint); }

std::optional<Incoming> Listener::receive() {
  for (;;) {
    zmq::message_t route;
    Incoming incoming;
    if (!router_.recv(route, zmq::recv_flags::dontwait)) {
      return std::nullopt;
    }
    // A message is delivered whole, so its further parts are there.
    int parts = 0;
    for (bool more = route.more(); more; more = incoming.body.more()) {
      (void)router_.recv(incoming.body, zmq::recv_flags::dontwait);
      ++parts;
    }
    if (parts == 1) {
      incoming.route = route.to_string();
      incoming.connection = zmq_msg_get(incoming.body.handle(), ZMQ_SRCFD);
      return incoming;
    }
  }
}

std::vector<int> Listener::ended() {
  std::vector<int> ended;
  zmq::message_t event;
  zmq::message_t endpoint;
  while (monitor_.recv(event, zmq::recv_flags::dontwait)) {
    (void)monitor_.recv(endpoint, zmq::recv_flags::dontwait);
    std::uint16_t kind = 0;
    std::int32_t connection = 0;
    if (event.size() != sizeof kind + sizeof connection) {
      continue;
    }
    std::memcpy(&kind, event.data(), sizeof kind);
    std::memcpy(&connection, static_cast<const char*>(event.data()) + sizeof kind,
                sizeof connection);
    if (kind == ZMQ_EVENT_ACCEPTED) {
      connections_.insert(connection);
    } else if (kind == ZMQ_EVENT_DISCONNECTED && connections_.erase(connection) == 1) {
      ended.push_back(connection);
    }
  }
  return ended;
}

}  // namespace sotto::internal
