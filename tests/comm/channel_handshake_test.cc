// The handshake of a channel, without sockets: who is let in, what is said, and when both sides
// mean the same pair of sessions.
#ifdef SOTTO_HAVE_ZMQ
#include <array>
#include <cstdint>
#include <deque>
#include <string>
#include <variant>

#include <doctest/doctest.h>

#include <sotto/base/philox.h>

#include "../../comm/zmq/channels/handshake.h"

namespace sotto::test::channel_handshake_test {

using namespace sotto::internal;

namespace {

PeerGreeting greeting_on(int connection, std::uint64_t session) {
  return {.route = "route " + std::to_string(connection),
          .connection = connection,
          .key = "key",
          .session = session};
}

/// What is due; 0 where it is not of that kind.
template <typename Kind>
std::uint64_t session_due(const Handshake& handshake) {
  const auto due = handshake.due();
  const auto* const message = due ? std::get_if<Kind>(&*due) : nullptr;
  return message == nullptr ? 0 : message->session;
}

constexpr auto greets = session_due<channel_wire::Greeting>;
constexpr auto accepts = session_due<channel_wire::Accept>;

/// A handshake that is complete: this side's session 1, the peer's 2 on connection 7.
Handshake complete_one() {
  Handshake handshake;
  handshake.open(1);
  handshake.sent();
  handshake.admit(greeting_on(7, 2));
  handshake.sent();
  CHECK(handshake.accept(1));
  CHECK(handshake.complete());
  return handshake;
}

}  // namespace

TEST_CASE("a side greets first, then accepts, and is complete once the peer has accepted") {
  Handshake handshake;
  handshake.open(1);
  CHECK(greets(handshake) == 1);
  handshake.admit(greeting_on(7, 2));
  CHECK(greets(handshake) == 1);  // before it accepts
  handshake.sent();
  CHECK(accepts(handshake) == 2);
  CHECK_FALSE(handshake.complete());
  handshake.sent();
  CHECK_FALSE(handshake.due());
  CHECK_FALSE(handshake.complete());
  CHECK(handshake.accept(1));
  CHECK(handshake.complete());
}

TEST_CASE("the order of what both sides say does not matter") {
  Handshake handshake;
  handshake.open(1);
  handshake.sent();
  handshake.admit(greeting_on(7, 2));
  CHECK(handshake.accept(1));
  CHECK_FALSE(handshake.complete());  // its greeting is not accepted yet
  handshake.sent();
  CHECK(handshake.complete());
}

TEST_CASE("an acceptance of another greeting is stale, and the present one may follow it, once") {
  Handshake handshake;
  handshake.open(1);
  handshake.sent();
  handshake.admit(greeting_on(7, 2));
  handshake.sent();
  CHECK_FALSE(handshake.stale());
  CHECK(handshake.accept(9));
  CHECK(handshake.stale());
  CHECK_FALSE(handshake.complete());
  CHECK(handshake.accept(9));
  CHECK(handshake.accept(1));
  CHECK(handshake.complete());
  CHECK_FALSE(handshake.accept(1));  // against the rules
}

TEST_CASE("what a peer accepted on a way out that is gone does not count any more") {
  Handshake handshake = complete_one();
  handshake.close();
  CHECK(handshake.stale());
  CHECK_FALSE(handshake.complete());
  handshake.open(3);
  CHECK(greets(handshake) == 3);
  handshake.sent();
  CHECK(accepts(handshake) == 2);  // the peer's greeting stands, and is accepted anew
  handshake.sent();
  CHECK_FALSE(handshake.complete());
  CHECK(handshake.accept(3));
  CHECK(handshake.complete());
}

TEST_CASE("a peer on this side's own connection goes with it") {
  Handshake handshake;
  handshake.open(1);
  handshake.sent();
  CHECK_FALSE(handshake.replied());
  handshake.note_reply();
  handshake.admit({.key = "key", .own = true, .session = 2});
  handshake.sent();
  CHECK(handshake.accept(1));
  CHECK(handshake.complete());
  CHECK(handshake.connection() == PeerGreeting::kNoConnection);
  CHECK(handshake.replied());
  handshake.close();
  CHECK(handshake.peer() == nullptr);
  CHECK_FALSE(handshake.replied());
}

TEST_CASE("a peer that greets anew has accepted nothing, and its new greeting is to be accepted") {
  Handshake handshake = complete_one();
  handshake.admit(greeting_on(8, 5));
  CHECK_FALSE(handshake.complete());
  CHECK(handshake.connection() == 8);
  CHECK(handshake.speaker("route 7") == Handshake::Speaker::stranger);
  CHECK(accepts(handshake) == 5);
  handshake.sent();
  CHECK(handshake.accept(1));
  CHECK(handshake.complete());
}

TEST_CASE("a rival changes nothing while it waits, and the last one that came is let in") {
  Handshake handshake = complete_one();
  CHECK(handshake.challenge(greeting_on(8, 5)) == PeerGreeting::kNoConnection);
  CHECK(handshake.challenge(greeting_on(9, 6)) == 8);  // to be cut
  CHECK(handshake.complete());
  CHECK_FALSE(handshake.due());
  CHECK(handshake.speaker("route 7") == Handshake::Speaker::peer);
  CHECK(handshake.speaker("route 8") == Handshake::Speaker::stranger);
  CHECK(handshake.speaker("route 9") == Handshake::Speaker::rival);
  CHECK(handshake.uses(7));
  CHECK_FALSE(handshake.uses(8));
  CHECK(handshake.uses(9));
  CHECK(handshake.expel() == 7);
  CHECK(handshake.peer() == nullptr);
  handshake.close();
  handshake.admit_rival();
  CHECK(handshake.rival() == nullptr);
  CHECK(handshake.connection() == 9);
  CHECK_FALSE(handshake.stale());  // it has said nothing since it greeted
  CHECK(handshake.expel() == 9);
  CHECK(handshake.expel() == PeerGreeting::kNoConnection);
}

TEST_CASE("what a rival said before it was let in is stale") {
  Handshake handshake = complete_one();
  handshake.challenge(greeting_on(8, 5));
  handshake.rival_spoke();
  CHECK(handshake.complete());
  handshake.expel();
  handshake.close();
  handshake.admit_rival();
  CHECK(handshake.stale());
  handshake.open(3);
  handshake.sent();
  handshake.sent();
  CHECK(handshake.accept(3));
  CHECK(handshake.complete());
}

TEST_CASE("a connection that ends is the rival's or the peer's, who is heard to its end") {
  Handshake handshake = complete_one();
  handshake.challenge(greeting_on(8, 5));
  CHECK_FALSE(handshake.ended(8));
  CHECK(handshake.rival() == nullptr);
  CHECK(handshake.ended(7));
  CHECK_FALSE(handshake.uses(7));
  CHECK(handshake.speaker("route 7") == Handshake::Speaker::peer);
  CHECK(handshake.complete());
  CHECK(handshake.expel() == PeerGreeting::kNoConnection);
  CHECK(handshake.dismiss_rival() == PeerGreeting::kNoConnection);
}

namespace {

/// Two sides whose ways out open, close and lose what is on them, in any order. The ways in are the
/// other's ways out, and keep what was sent in its order.
struct TwoSides {
  struct Side {
    Handshake handshake;
    std::deque<channel_wire::Message> way_out;  ///< on the way to the other
    bool open = false;
    int connection = 0;  ///< of the way out, at the other
    std::uint64_t session = 0;
    std::uint64_t heard = 0;  ///< the other's greeting that came last
  };

  void open(std::size_t i) {
    Side& side = sides[i];
    side.open = true;
    side.connection = ++connections;
    side.session = ++sessions;
    side.handshake.open(side.session);
  }
  void close(std::size_t i) {
    Side& side = sides[i];
    Side& other = sides[1 - i];
    side.open = false;
    side.way_out.clear();
    side.handshake.close();
    if (other.handshake.uses(side.connection)) {
      CHECK(other.handshake.ended(side.connection));
      other.handshake.expel();
    }
  }
  void send(std::size_t i) {
    Side& side = sides[i];
    if (const auto due = side.handshake.due()) {
      side.way_out.push_back(*due);
      side.handshake.sent();
    }
  }
  void deliver(std::size_t i) {
    Side& side = sides[i];
    Side& other = sides[1 - i];
    if (side.way_out.empty()) {
      return;
    }
    const channel_wire::Message message = side.way_out.front();
    side.way_out.pop_front();
    if (const auto* greeting = std::get_if<channel_wire::Greeting>(&message)) {
      other.heard = greeting->session;
      other.handshake.admit(greeting_on(side.connection, greeting->session));
    } else if (const auto* accept = std::get_if<channel_wire::Accept>(&message)) {
      CHECK(other.handshake.accept(accept->session));
    }
  }

  std::array<Side, 2> sides;
  int connections = 0;
  std::uint64_t sessions = 0;
};

}  // namespace

TEST_CASE("whatever is closed and opened meanwhile, both sides end with the same pair") {
  for (std::uint64_t seed = 1; seed <= 500; ++seed) {
    CAPTURE(seed);
    RandomStream random({.seed = seed, .purpose = Purpose::test});
    TwoSides two;
    for (int step = 0; step < 200; ++step) {
      const auto i = static_cast<std::size_t>(random.below(2));
      if (!two.sides[i].open) {
        two.open(i);
      } else if (random.below(20) == 0) {
        two.close(i);
      } else if (random.below(2) == 0) {
        two.send(i);
      } else {
        two.deliver(i);
      }
      for (const TwoSides::Side& side : two.sides) {
        // A side that is complete has heard a greeting, and means it.
        CHECK((!side.handshake.complete() || side.handshake.peer()->session == side.heard));
      }
    }
    for (const std::size_t i : {0U, 1U}) {
      if (!two.sides[i].open) {
        two.open(i);
      }
    }
    for (int step = 0; step < 10; ++step) {
      for (const std::size_t i : {0U, 1U}) {
        two.send(i);
        two.deliver(i);
      }
    }
    for (const std::size_t i : {0U, 1U}) {
      CHECK(two.sides[i].handshake.complete());
      CHECK(two.sides[i].handshake.peer()->session == two.sides[1 - i].session);
    }
  }
}

#endif  // SOTTO_HAVE_ZMQ

}  // namespace sotto::test::channel_handshake_test
