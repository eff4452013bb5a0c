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

}  // namespace

Listener::Listener(zmq::context_t& context, const std::vector<std::string>& endpoints,
                   const Limits& limits, const KeyPair* own)
    : most_connections_(limits.connections),
      spare_(::open("/dev/null", O_RDWR | O_CLOEXEC)),
      router_(context, zmq::socket_type::router),
      monitor_(context, router_, ZMQ_EVENT_ACCEPTED | ZMQ_EVENT_DISCONNECTED) {
  if (limits.limiter) {
    limiter_.emplace(*limits.limiter);
  }
  router_.set(zmq::sockopt::rcvhwm, kHeldMessages);
  router_.set(zmq::sockopt::sndhwm, limits.held_replies);
  router_.set(zmq::sockopt::router_mandatory, 1);  // tells when a reply finds no room
  if (own != nullptr) {
    set_curve_server(router_, *own);
  }
  for (const std::string& endpoint : endpoints) {
    set_common_options(router_, endpoint, limits.message_bytes);
    listening_.push_back(std::make_unique<ListeningSocket>(endpoint));
    use_descriptor(router_, listening_.back()->share());
    router_.bind(endpoint);
    endpoints_.push_back(router_.get(zmq::sockopt::last_endpoint));
  }
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
      if (limiter_ && !incoming.key.empty()) {
        limiter_->proved(incoming.connection, incoming.key);
      }
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
  if (!limiter_) {
    for (const auto& socket : listening_) {
      socket->pause(full());
    }
  }
  std::erase_if(endings_, [&, now = Deadline::Clock::now()](const auto& item) {
    const bool complete = item.second.complete(now);
    if (complete) {
      ended_.push_back(item.first);
    }
    return complete;
  });
  return std::exchange(ended_, {});
}

void Listener::expect(std::set<Source> listed) {
  if (limiter_) {
    limiter_->expect(std::move(listed));
  }
}

void Listener::admit_own_host() {
  constexpr Source kLoopback{false, 0x7F000001};
  constexpr Source kLoopback6{true, 0};  // ::1
  for (std::size_t i = 0; i < listening_.size(); ++i) {
    const Source own = source_of_endpoint(endpoints_[i]).value_or(kLoopback);
    listening_[i]->admit({.strangers = false, .others = {kLoopback, kLoopback6, own}});
  }
}

void Listener::keep_order() {
  if (!limiter_) {
    return;
  }
  for (const int connection : limiter_->crowded()) {
    cut(connection);
  }
  auto rule = limiter_->rule(Deadline::Clock::now());
  if (full()) {
    rule.strangers = false;
    rule.others.clear();
  }
  for (const auto& socket : listening_) {
    socket->admit(rule);
  }
}

bool Listener::send(const std::string& route, zmq::message_t body) {
  try {
    zmq::message_t to(route.data(), route.size());
    if (!try_send(router_, to, zmq::send_flags::sndmore)) {
      return false;
    }
    while (!try_send(router_, body)) {  // goes where the first part went
    }
    return true;
  } catch (const zmq::error_t& error) {
    if (error.num() != EHOSTUNREACH) {
      throw;
    }
    return false;
  }
}

void Listener::look() {
  while (const auto event = monitor_.next()) {
    if (event->kind == ZMQ_EVENT_ACCEPTED) {
      const auto now = Deadline::Clock::now();
      if (endings_.erase(event->value) == 1) {
        ended_.push_back(event->value);  // its number is another one's: it was closed
      }
      connections_[event->value] = {now, OpenFile::at(event->value)};
      if (limiter_) {
        limiter_->arrived(event->value, source_of(event->value), now);
      }
    } else {
      note_end(event->value);
    }
  }
}

void Listener::note_end(int connection) {
  const auto known = connections_.find(connection);
  if (known == connections_.end()) {
    return;
  }
  endings_.insert_or_assign(connection,
                            ConnectionEnd(connection, known->second.file, Deadline::Clock::now()));
  connections_.erase(known);
  if (limiter_) {
    limiter_->ended(connection);
  }
}

std::vector<int> Listener::older_than(Deadline::Clock::time_point time) const {
  std::vector<int> older;
  for (const auto& [connection, there] : connections_) {
    if (there.since < time) {
      older.push_back(connection);
    }
  }
  return older;
}

void Listener::cut(int connection) {
  // ZeroMQ has no call for this. Numbers are reused, but an end is reported before the number is
  // free: a copy made while none is reported is of this connection. The copy takes the place of a
  // descriptor that is there, so that it is made where no other one can be.
  const FileDescriptor nothing(::open("/dev/null", O_RDWR | O_CLOEXEC));
  const bool copied = ::dup3(connection, spare_.get(), O_CLOEXEC) >= 0;
  look();
  if (copied && connections_.contains(connection) &&
      std::find(ended_.begin(), ended_.end(), connection) == ended_.end()) {
    (void)::shutdown(spare_.get(), SHUT_RDWR);
  }
  if (nothing) {
    (void)::dup3(nothing.get(), spare_.get(), O_CLOEXEC);  // the connection's last holder is ZeroMQ
  }
}

}  // namespace sotto::internal
