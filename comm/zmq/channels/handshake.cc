#include "handshake.h"

#include <utility>

namespace sotto::internal {

void Handshake::close() {
  session_ = 0;
  greeted_ = false;
  accepted_ = 0;
  replied_ = false;
  if (peer_ && peer_->greeting.own) {
    peer_.reset();
  } else if (peer_ && peer_->acceptance == Acceptance::current) {
    peer_->acceptance = Acceptance::stale;
  }
}

std::optional<channel_wire::Message> Handshake::due() const {
  if (!greeted_) {
    return channel_wire::Greeting{session_};
  }
  if (peer_ && accepted_ != peer_->greeting.session) {
    return channel_wire::Accept{peer_->greeting.session};
  }
  return {};
}

void Handshake::sent() {
  if (!greeted_) {
    greeted_ = true;
  } else if (peer_) {
    accepted_ = peer_->greeting.session;
  }
}

void Handshake::admit(PeerGreeting greeting) { peer_ = Greeted{.greeting = std::move(greeting)}; }

int Handshake::challenge(PeerGreeting greeting) {
  const int before = dismiss_rival();
  rival_ = Greeted{.greeting = std::move(greeting)};
  return before;
}

bool Handshake::accept(std::uint64_t session) {
  if (peer_->acceptance == Acceptance::current) {
    return false;
  }
  peer_->acceptance = session == session_ ? Acceptance::current : Acceptance::stale;
  return true;
}

void Handshake::rival_spoke() { rival_->acceptance = Acceptance::stale; }

bool Handshake::ended(int connection) {
  if (rival_ && rival_->greeting.connection == connection) {
    rival_.reset();
    return false;
  }
  peer_->greeting.connection = PeerGreeting::kNoConnection;
  return true;
}

int Handshake::expel() {
  const int connection = connection_of(peer_);
  peer_.reset();
  return connection;
}

void Handshake::admit_rival() { peer_ = std::exchange(rival_, std::nullopt); }

int Handshake::dismiss_rival() {
  const int connection = connection_of(rival_);
  rival_.reset();
  return connection;
}

bool Handshake::complete() const {
  return greeted_ && peer_ && peer_->acceptance == Acceptance::current &&
         accepted_ == peer_->greeting.session;
}

Handshake::Speaker Handshake::speaker(std::string_view route) const {
  if (peer_ && peer_->greeting.route == route) {
    return Speaker::peer;
  }
  return rival_ && rival_->greeting.route == route ? Speaker::rival : Speaker::stranger;
}

bool Handshake::uses(int connection) const {
  return connection_of(peer_) == connection || connection_of(rival_) == connection;
}

}  // namespace sotto::internal
