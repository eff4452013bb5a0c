#include "listener.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "authenticator.h"
#include "socket.h"

namespace sotto::internal {
namespace {

/// Messages of one connection that ZeroMQ holds before it stops reading from the network.
constexpr int kHeldMessages = 4;
/// Replies to one connection that it holds; more are dropped. Twice what a client of the store may
/// await, as ZeroMQ counts what it has sent in steps of half of this, and room for one.
constexpr int kHeldReplies = 24;

}  // namespace

Listener::Listener(zmq::context_t& context, const std::string& endpoint, const Limits& limits,
                   const KeyPair* own)
    : most_connections_(limits.connections),
      listening_(endpoint),
      router_(context, zmq::socket_type::router),
      monitor_(context, router_, ZMQ_EVENT_ACCEPTED | ZMQ_EVENT_DISCONNECTED) {
  set_common_options(router_, endpoint, limits.message_bytes);
  router_.set(zmq::sockopt::rcvhwm, kHeldMessages);
  router_.set(zmq::sockopt::sndhwm, kHeldReplies);
  router_.set(zmq::sockopt::router_mandatory, 1);  // tells when a reply finds no room
  if (own != nullptr) {
    set_curve_server(router_, *own);
  }
  use_descriptor(router_, listening_.share());
  router_.bind(endpoint);
  endpoint_ = router_.get(zmq::sockopt::last_endpoint);
}

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
      incoming.key = identity_of(incoming.body);
      return incoming;
    }
  }
  return std::nullopt;
}

void Listener::reply(const std::string& route, zmq::message_t body) {
  try {
    for (int attempt = 0; attempt < 2; ++attempt) {
      zmq::message_t to(route.data(), route.size());
      if (try_send(router_, to, zmq::send_flags::sndmore)) {
        while (!try_send(router_,
                         body)) {  // goes where the first part went; only signals come between
        }
        return;
      }
      (void)writable(router_);  // takes note of what has left since, which sending does rarely
    }
  } catch (const zmq::error_t& error) {
    if (error.num() != EHOSTUNREACH) {
      throw;
    }
  }
}

std::vector<int> Listener::ended() {
  look();
  listening_.pause(connections_.size() >= most_connections_);
  return std::exchange(ended_, {});
}

void Listener::look() {
  while (const auto event = monitor_.next()) {
    if (event->kind == ZMQ_EVENT_ACCEPTED) {
      connections_[event->value] = Deadline::Clock::now();
    } else if (connections_.erase(event->value) == 1) {
      ended_.push_back(event->value);
    }
  }
}

std::vector<int> Listener::older_than(Deadline::Clock::time_point time) const {
  std::vector<int> older;
  for (const auto& [connection, since] : connections_) {
    if (since < time) {
      older.push_back(connection);
    }
  }
  return older;
}

void Listener::cut(int connection) {
  // ZeroMQ has no call for this. Numbers are reused, but an end is reported before the number is
  // free: a copy made while none is reported is of this connection.
  const int copy = ::fcntl(connection, F_DUPFD_CLOEXEC, 0);
  look();
  if (alive(connection) && std::find(ended_.begin(), ended_.end(), connection) == ended_.end()) {
    (void)::shutdown(copy, SHUT_RDWR);
  }
  if (copy >= 0) {
    ::close(copy);
  }
}

}  // namespace sotto::internal
