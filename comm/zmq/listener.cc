#include "listener.h"

#include <cstring>

#include "socket.h"

namespace sotto::internal {
namespace {

constexpr const char* kMonitor = "inproc://listener-monitor";
/// Messages of one connection that ZeroMQ holds before it stops reading from the network.
constexpr int kHeldMessages = 4;

}  // namespace

Listener::Listener(zmq::context_t& context, const std::string& endpoint,
                   std::size_t max_message_bytes)
    : router_(context, zmq::socket_type::router), monitor_(context, zmq::socket_type::pair) {
  set_common_options(router_, endpoint, max_message_bytes);
  router_.set(zmq::sockopt::rcvhwm, kHeldMessages);
  if (zmq_socket_monitor(router_.handle(), kMonitor, ZMQ_EVENT_ACCEPTED | ZMQ_EVENT_DISCONNECTED) !=
      0) {
    throw zmq::error_t();
  }
  // Unbounded: a full monitor would stop ZeroMQ's I/O thread.
  monitor_.set(zmq::sockopt::rcvhwm, 0);
  monitor_.set(zmq::sockopt::linger, 0);
  monitor_.connect(kMonitor);
  router_.bind(endpoint);
}

std::string Listener::endpoint() const { return router_.get(zmq::sockopt::last_endpoint); }

std::optional<Incoming> Listener::receive() {
  for (zmq::message_t route; try_receive(router_, route);) {
    Incoming incoming;
    int parts = 0;
    for (bool more = route.more(); more; more = incoming.body.more()) {
      // A message is delivered whole: its further parts are there, and only signals come between.
      while (!try_receive(router_, incoming.body)) {
      }
      ++parts;
    }
    if (parts == 1) {
      incoming.route = route.to_string();
      incoming.connection = zmq_msg_get(incoming.body.handle(), ZMQ_SRCFD);
      return incoming;
    }
  }
  return std::nullopt;
}

void Listener::reply(const std::string& route, zmq::message_t body) {
  zmq::message_t to(route.data(), route.size());
  if (try_send(router_, to, zmq::send_flags::sndmore)) {
    while (!try_send(router_, body)) {  // goes where the first part went; only signals come between
    }
  }
}

std::vector<int> Listener::ended() {
  std::vector<int> ended;
  zmq::message_t event;
  zmq::message_t endpoint;
  while (try_receive(monitor_, event)) {
    while (!try_receive(monitor_, endpoint)) {  // follows its event at once
    }
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
