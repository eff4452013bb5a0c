// Known answers of what a site decides about the secure sum of a round.
#include <doctest/doctest.h>

#include <cstddef>
#include <vector>

#include <sotto/sites/core/sums/sum_round.h>

namespace sotto::test::sum_round_test {

using namespace sotto::sites;

namespace {

constexpr std::size_t kWindowOfSums = 4;

/// A peer that is heard and has said that it is in this round.
Neighbour peer_in(Round round) {
  Neighbour peer;
  peer.entry = {.name = "peer", .hears = true, .tells = true};
  peer.channel = {.stage = ChannelStage::up, .hears_us = true, .tells_us = true};
  peer.known.round = round;
  return peer;
}

void arrive(Neighbour& peer, Round round) {
  const sites::Parcel parcel = {
      .incarnation = 1, .sequence = peer.in.received() + 1, .round = round, .payload = {}};
  REQUIRE(peer.in.arrive(parcel, {}, kWindowOfSums) == InStream::Arrival::kept);
}

std::vector<Neighbour> peers_in(const std::vector<Round>& rounds) {
  std::vector<Neighbour> peers;
  for (const Round round : rounds) {
    peers.push_back(peer_in(round));
  }
  return peers;
}

}  // namespace

TEST_CASE("a round can have a sum while enough peers have come or may come") {
  std::vector<Neighbour> peers = peers_in({7, 7, 7});
  CHECK(sum_hope(peers, 7, 2) == SumHope::few);
  arrive(peers[0], 7);
  CHECK(sum_hope(peers, 7, 2) == SumHope::few);
  arrive(peers[1], 7);
  CHECK(sum_hope(peers, 7, 2) == SumHope::enough);
  CHECK(sum_hope(peers, 7, 3) == SumHope::few);
  peers[2].known.round = 8;  // it has gone on without this site
  CHECK(sum_hope(peers, 7, 3) == SumHope::none);
  peers[2].known.round = 7;
  peers[2].channel.stage = ChannelStage::down;
  CHECK(sum_hope(peers, 7, 3) == SumHope::none);
}

TEST_CASE("a site that is behind most others goes on in their round") {
  // The two that are farthest stand in rounds 12 and 11, so that one honest site is in 11.
  CHECK(round_after(peers_in({12, 11, 5}), 7, 2, 0, 0) == 10);
  CHECK(round_after(peers_in({12, 11, 11}), 7, 2, 0, 0) == 11);  // three do not need its parcel
  CHECK(round_after(peers_in({12, 11, 11}), 7, 2, 0, 11) == 7);  // never beyond the last round
  CHECK(round_after(peers_in({12}), 7, 2, 0, 0) == 7);           // one alone may lie
  CHECK(round_after(peers_in({7, 7, 7}), 7, 2, 0, 0) == 7);
  // One round ahead is in step, but not for long without a sum.
  CHECK(round_after(peers_in({8, 8, 8}), 7, 2, 1, 0) == 7);
  CHECK(round_after(peers_in({8, 8, 8}), 7, 2, 2, 0) == 8);
}

TEST_CASE("peers that never answer are waited for no more, and again once they answer") {
  std::vector<Neighbour> peers = peers_in({1, 1});
  SumRound sum;
  const auto ask = [&](Round round) {
    sum.ask(peers);
    for (Neighbour& peer : peers) {
      peer.channel.questioned = round;
    }
    CHECK(sum.asked());
  };
  Round round = 0;
  while (peers[1].answering.waited_for()) {
    ask(++round);
    REQUIRE(round < 1000);
    CHECK(SumRound::awaited(peers, {0, 1}) == std::vector<std::size_t>{0, 1});
    note_answer(peers[0], round);
    note_answer(peers[1], round - 1);  // about a round that has ended
    sum.end(peers, std::vector<std::size_t>{1});
    CHECK_FALSE(sum.asked());
  }
  CHECK(peers[0].answering.waited_for());
  ask(++round);
  CHECK(SumRound::awaited(peers, {0, 1}) == std::vector<std::size_t>{0});
  for (const Round last = round + 1000; !peers[1].answering.waited_for();) {
    note_answer(peers[1], round);
    sum.end(peers, {});
    REQUIRE(round < last);
    ask(++round);
  }
  CHECK(SumRound::awaited(peers, {0, 1}) == std::vector<std::size_t>{0, 1});
  sum.give_up();
  CHECK_FALSE(sum.asked());
}

}  // namespace sotto::test::sum_round_test
