// Which nodes of a roster are in a site's list of peers, for how long, and under which numbers.
#include <map>
#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/base/philox.h>
#include <sotto/sites/nodes/roster_peers.h>

namespace sotto::test::roster_peers_test {

using sites::NodePhase;
using sites::RosterTime;
using sites::RosterView;

namespace {

sites::RosterMember member(const std::string& name, bool neighbour,
                           NodePhase phase = NodePhase::up) {
  return {.entry = {.name = name,
                    .incarnation = 1,
                    .version = 1,
                    .phase = phase,
                    .address = name + ":1"},
          .neighbour = neighbour};
}

RosterView view_of(std::vector<sites::RosterMember> members) {
  RosterView view;
  view.members = std::move(members);
  return view;
}

std::set<std::string> names(const RosterPeers& list) {
  std::set<std::string> names;
  for (const auto& [name, peer] : list.peers()) {
    names.insert(name);
  }
  return names;
}

using Names = std::set<std::string>;
using Draining = std::vector<std::string>;

Draining draining(const RosterPeers& list, const RosterView& view) {
  Draining names;
  for (const sites::DrainingPeer& peer : list.draining(view)) {
    names.push_back(peer.name);
  }
  return names;
}

}  // namespace

TEST_CASE("roster peers: an edge that has gone is drained, and then the peer is") {
  RosterPeers list;
  CHECK(list.follow(view_of({member("a", true), member("b", true)}), RosterTime(0)));
  const RosterView without = view_of({member("a", true), member("b", false)});
  CHECK(!list.follow(without, RosterTime(1'000)));
  CHECK(names(list) == Names{"a", "b"});
  CHECK(draining(list, without) == Draining{"b"});
  CHECK(!list.follow(without, RosterTime(1'000) + RosterPeers::kDrainFor - RosterTime(1)));
  CHECK(list.follow(without, RosterTime(1'000) + RosterPeers::kDrainFor));
  CHECK(names(list) == Names{"a"});
  CHECK(draining(list, without).empty());
}

TEST_CASE("roster peers: an edge that comes back is a whole one again") {
  RosterPeers list;
  const RosterView with = view_of({member("a", true)});
  const RosterView without = view_of({member("a", false)});
  list.follow(with, RosterTime(0));
  list.follow(without, RosterTime(100));
  CHECK(!list.follow(with, RosterTime(4'000)));
  CHECK(draining(list, with).empty());
  CHECK(!list.follow(without, RosterTime(9'000)));  // the time begins anew
  CHECK(draining(list, without) == Draining{"a"});
}

TEST_CASE("roster peers: nobody waits for one that is silent, gone or there twice") {
  for (const int kind : {0, 1, 2}) {
    CAPTURE(kind);
    RosterPeers list;
    list.follow(view_of({member("a", true)}), RosterTime(0));
    auto after = member("a", false);
    after.suspected = kind == 0;
    after.entry.phase = kind == 1 ? NodePhase::gone : NodePhase::up;
    after.conflict = kind == 2;
    CHECK(list.follow(view_of({after}), RosterTime(1)));
    CHECK(names(list).empty());
  }
}

TEST_CASE("roster peers: with all nodes in the list a silent one stays, as its channel judges it") {
  RosterPeers list("self", RosterReach::all);
  list.follow(view_of({member("self", false), member("a", false), member("b", false)}),
              RosterTime(0));
  CHECK(names(list) == Names{"a", "b"});
  auto silent = member("a", false);
  silent.suspected = true;
  CHECK(!list.follow(view_of({silent, member("b", false)}), RosterTime(1)));
  CHECK(list.follow(view_of({member("a", false, NodePhase::gone), member("b", false)}),
                    RosterTime(2)));
  CHECK(names(list) == Names{"b"});
}

TEST_CASE("roster peers: the heir of a node that leaves stays, whether it answers or not") {
  RosterPeers list;
  list.follow(view_of({member("a", true)}), RosterTime(0));
  list.keep("a");
  auto silent = member("a", false);
  silent.suspected = true;
  CHECK(!list.follow(view_of({silent}), RosterTime(60'000)));
  CHECK(draining(list, view_of({silent})).empty());
  CHECK(list.follow(view_of({member("a", false, NodePhase::gone)}), RosterTime(60'001)));
}

TEST_CASE(
    "roster peers: a peer whose edge has gone confirms what it is sent, one that leaves need not") {
  RosterPeers list;
  list.follow(view_of({member("a", true), member("b", true)}), RosterTime(0));
  const RosterView view = view_of({member("a", false), member("b", true, NodePhase::leaving)});
  list.follow(view, RosterTime(1));
  const auto found = list.draining(view);
  REQUIRE(found.size() == 2);
  CHECK((found[0].name == "a" && !found[0].leaves));
  CHECK((found[1].name == "b" && found[1].leaves));
}

TEST_CASE("roster peers: however many edges go at once, the list stays short") {
  RosterPeers list;
  for (int wave = 0; wave < 40; ++wave) {
    std::vector<sites::RosterMember> members;
    for (int node = 0; node < 400; ++node) {
      members.push_back(member("n" + std::to_string(node), node / 10 == wave));
    }
    list.follow(view_of(std::move(members)), RosterTime(100 * wave));
    CHECK(list.peers().size() <= 10 + RosterPeers::kMostDrained);
  }
}

TEST_CASE("roster peers: no two have one number, and a number is not given to another at once") {
  constexpr std::uint64_t kSeed = 20'261'127;
  CAPTURE(kSeed);
  RandomStream random({.seed = kSeed, .purpose = Purpose::faults});
  RosterPeers list;
  std::map<std::string, Rank> before;
  for (int step = 0; step < 2'000; ++step) {
    std::vector<sites::RosterMember> members;
    for (int node = 0; node < 12; ++node) {
      members.push_back(member("node" + std::to_string(node), random.below(2) == 0));
    }
    list.follow(view_of(std::move(members)), RosterTime(1'000 * step));
    std::map<std::string, Rank> now;
    std::set<Rank> ranks;
    for (const auto& [name, peer] : list.peers()) {
      now[name] = peer.rank;
      CHECK(ranks.insert(peer.rank).second);
    }
    for (const auto& [name, rank] : now) {
      const auto same = before.find(name);
      CHECK((same == before.end() || same->second == rank));
      for (const auto& [other, taken] : before) {
        CHECK((other == name || taken != rank));
      }
    }
    before = std::move(now);
  }
}

}  // namespace sotto::test::roster_peers_test
