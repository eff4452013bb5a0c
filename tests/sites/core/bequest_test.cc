// Known answers of the choice of an heir, and of what a gift is worth until it is confirmed.
#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <vector>

#include <sotto/sites/core/bequest.h>

namespace sotto::test::bequest_test {

using namespace sotto::sites;

namespace {

/// A peer that is up and exchanges both ways.
Neighbour peer_named(const std::string& name) {
  Neighbour peer;
  peer.entry = {.name = name, .hears = true, .tells = true};
  peer.channel = {.stage = ChannelStage::up, .hears_us = true, .tells_us = true};
  return peer;
}

Sequence push(Neighbour& peer, double mass) {
  return peer.out.push(
      {.round = 1, .mass = mass, .payload = std::make_shared<const std::vector<std::byte>>()},
      false);
}

constexpr std::size_t kWindow = 2;

}  // namespace

TEST_CASE("the heir is the first by name that can take a parcel") {
  const std::vector<Neighbour> able = {peer_named("c"), peer_named("a"), peer_named("b")};
  CHECK(choose_heir(able, 5, kWindow) == 1);
  std::vector<Neighbour> peers = able;
  SUBCASE("not one that leaves") { peers[1].draining = true; }
  SUBCASE("not an observer") { peers[1].observer = true; }
  SUBCASE("not one that is barred in this round") { peers[1].barred_until = 6; }
  SUBCASE("not one that is down") { peers[1].channel.stage = ChannelStage::down; }
  SUBCASE("not one that sends nothing") { peers[1].channel.tells_us = false; }
  SUBCASE("not one that does not take what is sent") { peers[1].channel.hears_us = false; }
  SUBCASE("not one that has begun anew with a gift") { peers[1].gifts = 1; }
  SUBCASE("not one without room") {
    push(peers[1], 0.5);
    CHECK(choose_heir(peers, 5, kWindow) == 1);
    push(peers[1], 0.5);
  }
  CHECK(choose_heir(peers, 5, kWindow) == 2);
}

TEST_CASE("where all have begun anew with a gift the one that did so least inherits") {
  std::vector<Neighbour> peers = {peer_named("c"), peer_named("a"), peer_named("b")};
  peers[0].gifts = 1;
  peers[1].gifts = 2;
  peers[2].gifts = 1;
  CHECK(choose_heir(peers, 5, kWindow) == 2);
  peers[2].channel.stage = ChannelStage::down;
  CHECK(choose_heir(peers, 5, kWindow) == 0);
  peers[0].draining = true;
  CHECK(choose_heir(peers, 5, kWindow) == 1);
}

TEST_CASE("nobody inherits where nobody can") {
  std::vector<Neighbour> peers = {peer_named("a")};
  peers[0].barred_until = 6;
  CHECK_FALSE(choose_heir(peers, 5, kWindow));
  CHECK(choose_heir(peers, 6, kWindow) == 0);
  CHECK_FALSE(choose_heir({}, 6, kWindow));
}

TEST_CASE("a gift is undelivered until its receipt, and for good where its heir has gone") {
  std::vector<Neighbour> peers = {peer_named("a"), peer_named("b")};
  Bequest bequest;
  CHECK_FALSE(bequest.given());
  CHECK(bequest.delivered(peers));
  push(peers[1], 0.25);  // an earlier parcel, which is no gift
  const Sequence number = push(peers[1], 0.75);
  bequest.give("b", number);
  CHECK(bequest.given());
  CHECK(bequest.heir() == "b");
  CHECK(bequest.held_by(peers[0]) == nullptr);
  CHECK(bequest.undelivered(peers) == 0.75);
  CHECK_FALSE(bequest.delivered(peers));
  SUBCASE("the receipt of the parcel before is not that of the gift") {
    peers[1].out.receipt(number - 1);
    CHECK(bequest.undelivered(peers) == 0.75);
    CHECK_FALSE(bequest.delivered(peers));
  }
  SUBCASE("the receipt") {
    peers[1].out.receipt(number);
    CHECK(bequest.undelivered(peers) == 0);
    CHECK(bequest.delivered(peers));
    push(peers[0], 0.5);
    CHECK_FALSE(bequest.delivered(peers));  // another peer's parcel is under way
    peers[0].leaves = true;
    CHECK(bequest.delivered(peers));
  }
  SUBCASE("the heir leaves the list") {
    bequest.retire(peers[0]);
    bequest.retire(peers[1]);
    peers.pop_back();
    CHECK(bequest.undelivered(peers) == 0.75);
    CHECK_FALSE(bequest.delivered(peers));
  }
  SUBCASE("the gift is taken back") {
    bequest.take_back();
    CHECK_FALSE(bequest.given());
    CHECK(bequest.heir().empty());
    CHECK(bequest.undelivered(peers) == 0);
  }
}

}  // namespace sotto::test::bequest_test
