// How a peer stands, and the event that tells of it.
#include <sotto/sites/nodes/report/peer_standing.h>

#include <array>
#include <string>
#include <utility>

#include <doctest/doctest.h>

#include <sotto/sites/nodes/report/site_event.h>

namespace sotto::test::peer_standing_test {

using sites::PeerHabit;
using sites::PeerState;

TEST_CASE("each habit of a peer is a concern with a text, and an event of the concern's name") {
  const sites::SitePeer trust = {.name = "b"};
  const auto standing = [&](const PeerState& peer) {
    return standing_of(peer, trust, true, {}, "");
  };
  PeerState in_order;
  in_order.name = "b";
  in_order.up = in_order.heard = in_order.hears_us = in_order.tells_us = true;
  in_order.waited_for = in_order.answers = true;
  CHECK(standing(in_order).concern == PeerConcern::none);
  CHECK_FALSE(event_of(PeerConcern::none));

  const auto told = [&](const PeerState& peer) {
    const PeerStanding found = standing(peer);
    CHECK(found.phase == PeerPhase::up);
    CHECK_FALSE(found.text.empty());
    const auto event = event_of(found.concern);
    REQUIRE(event);
    CHECK(name_of(*event) == "peer-" + std::string(name_of(found.concern)));
    return found.concern;
  };
  for (const auto& [habit, concern] : std::to_array<std::pair<PeerHabit, PeerConcern>>(
           {{PeerHabit::takes, PeerConcern::takes},
            {PeerHabit::gives, PeerConcern::gives},
            {PeerHabit::confirms_nothing, PeerConcern::confirms_nothing},
            {PeerHabit::sends_nothing, PeerConcern::sends_nothing},
            {PeerHabit::mints, PeerConcern::mints},
            {PeerHabit::far_ahead, PeerConcern::far_ahead},
            {PeerHabit::stays_far, PeerConcern::stays_far}})) {
    CAPTURE(name_of(concern));
    PeerState peer = in_order;
    peer.habit = habit;
    CHECK(told(peer) == concern);
    CHECK(name_of(habit) == name_of(concern));
  }
  PeerState barred = in_order;
  barred.barred = true;
  CHECK(told(barred) == PeerConcern::barred);
  PeerState late = in_order;
  late.waited_for = false;
  CHECK(told(late) == PeerConcern::late);
  late = in_order;
  late.answers = false;
  CHECK(told(late) == PeerConcern::late);
}

}  // namespace sotto::test::peer_standing_test
