// When a node joins a run, begins one, and gives up one that nobody is in, by what it sees.
#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/base/philox.h>
#include <sotto/sites/elastic/elastic_beginning.h>

#include "support/seed.h"

namespace sotto::test::elastic_beginning_test {

namespace {

using Move = ElasticBeginning::Move;
using Stand = BeginningSight::Stand;
using Time = ElasticBeginning::Time;

constexpr Time kAgain{10'000};

/// A node that sees one other, which is in no run.
BeginningSight two_nodes(Stand stand) {
  BeginningSight sight;
  sight.stand = stand;
  sight.name = "b";
  sight.node.joined = true;
  sight.node.up = 2;
  sight.node.least = 2;
  sight.all_greeted = true;
  sight.heard["c"] = {.incarnation = 1};
  return sight;
}

/// What the node does after `lasted`, in which all stays as it is.
Move after(ElasticBeginning& beginning, const BeginningSight& sight, Time lasted) {
  (void)beginning.look(sight, Time(1));
  return beginning.look(sight, Time(1) + lasted);
}

}  // namespace

TEST_CASE("epoch beginnings: the first seed begins at once, and others never without the option") {
  BeginningSight sight = two_nodes(Stand::free);
  ElasticBeginning other(std::nullopt);
  CHECK(after(other, sight, Time(1'000'000)) == Move::none);
  sight.node.first_seed = true;
  ElasticBeginning first(std::nullopt);
  CHECK(first.look(sight, Time(0)) == Move::found);
  sight.heard["c"].self.model = 7;  // what that one has would be lost
  CHECK(after(first, sight, Time(1'000'000)) == Move::none);
  sight.model = 8;
  CHECK(first.look(sight, Time(0)) == Move::found);
  sight.all_greeted = false;
  CHECK(first.look(sight, Time(0)) == Move::none);
  sight.all_greeted = true;
  for (const bool member : {true, false}) {
    sight.heard["c"].member = member;
    sight.heard["c"].hears = !member;
    CHECK(first.look(sight, Time(0)) == Move::join);
  }
}

TEST_CASE("epoch beginnings: a node that was in no run forgets one of which it hears nobody") {
  ElasticBeginning beginning(std::nullopt);
  BeginningSight sight = two_nodes(Stand::seeks);
  CHECK(after(beginning, sight, ElasticBeginning::kForgetAfter - Time(1)) == Move::none);
  sight.all_greeted = false;  // one that is there has yet to answer
  CHECK(beginning.look(sight, Time(100'000)) == Move::none);
  sight.all_greeted = true;
  CHECK(beginning.look(sight, Time(100'000)) == Move::none);
  CHECK(beginning.look(sight, Time(100'000) + ElasticBeginning::kForgetAfter) == Move::give_up);
  CHECK_FALSE(beginning.gave_up());
  sight.was_in = true;
  ElasticBeginning voter(std::nullopt);
  CHECK(after(voter, sight, Time(1'000'000)) == Move::none);
}

TEST_CASE(
    "epoch beginnings: with the option a run is given up once MIN nodes were up for so long") {
  for (const Stand stand : {Stand::seeks, Stand::stuck}) {
    BeginningSight sight = two_nodes(stand);
    sight.was_in = true;
    ElasticBeginning beginning(kAgain);
    CHECK(after(beginning, sight, kAgain - Time(1)) == Move::none);
    CHECK(beginning.look(sight, Time(1) + kAgain) == Move::give_up);
    CHECK(beginning.gave_up());
    sight.node.least = 3;
    ElasticBeginning few(kAgain);
    CHECK(after(few, sight, Time(1'000'000)) == Move::none);
    sight.stand = Stand::well;
    CHECK(beginning.look(sight, Time(0)) == Move::none);
    CHECK_FALSE(beginning.gave_up());
  }
  // Where another run is there nothing is to be waited for.
  BeginningSight sight = two_nodes(Stand::seeks);
  sight.was_in = true;
  sight.heard["c"].member = true;
  ElasticBeginning beginning(kAgain);
  CHECK(after(beginning, sight, ElasticBeginning::kForgetAfter) == Move::give_up);
}

TEST_CASE("epoch beginnings: the wait counts from when MIN nodes are up, and bears arrivals") {
  for (const Stand stand : {Stand::seeks, Stand::free}) {
    BeginningSight sight = two_nodes(stand);
    sight.was_in = sight.node.joined = true;
    sight.model = 500;
    sight.heard.clear();
    sight.node.up = 1;
    ElasticBeginning beginning(kAgain);
    CHECK(after(beginning, sight, 10 * kAgain) == Move::none);  // alone
    sight.node.up = 2;
    sight.heard["c"] = {.incarnation = 3, .self = {.model = 450}};
    CHECK(beginning.look(sight, 10 * kAgain) == Move::none);
    sight.all_greeted = false;  // another one comes, and has yet to say hello
    CHECK(beginning.look(sight, 10 * kAgain + kAgain / 2) == Move::none);
    sight.all_greeted = true;
    CHECK(beginning.look(sight, 11 * kAgain) != Move::none);
    // One that answers the roster, and cannot be reached, is not waited for without end.
    ElasticBeginning other(kAgain);
    sight.all_greeted = false;
    CHECK(after(other, sight, 2 * kAgain - Time(1)) == Move::none);
    CHECK(other.look(sight, 2 * kAgain + Time(1)) != Move::none);
  }
}

TEST_CASE("epoch beginnings: a run that goes on is better than one that cannot") {
  const sites::History own{1, 1};
  const sites::History another{2, 2};
  BeginningSight sight = two_nodes(Stand::stuck);
  sight.run = own;
  sight.heard["c"] = {
      .incarnation = 3, .history = another, .member = true, .self = {.stuck = true}};
  ElasticBeginning beginning(kAgain);
  CHECK(beginning.look(sight, Time(0)) == Move::none);
  sight.heard["c"].self.stuck = false;
  CHECK(beginning.look(sight, Time(0)) == Move::give_up);
  // What is said of the run that it gave up may be from before: only who goes on in it counts.
  sight.stand = Stand::free;
  sight.heard["c"] = {.incarnation = 3, .history = own, .hears = true};
  CHECK(beginning.look(sight, Time(0)) == Move::none);
  sight.heard["c"] = {.incarnation = 3, .history = own, .member = true, .self = {.stuck = true}};
  CHECK(beginning.look(sight, Time(0)) == Move::none);
  sight.heard["c"].self.stuck = false;
  CHECK(beginning.look(sight, Time(0)) == Move::join);
}

TEST_CASE("epoch beginnings: of nodes that see each other the one with the newest model begins") {
  const std::uint64_t seed = drawn_seed();
  CAPTURE(seed);
  RandomStream draw({.seed = seed, .purpose = Purpose::faults});
  for (int play = 0; play < 200; ++play) {
    const std::size_t nodes = 2 + draw.below(5);
    std::map<std::string, ElasticHello> hellos;
    const std::uint64_t first = draw.below(nodes + 1);  // or none of them
    for (std::size_t k = 0; k < nodes; ++k) {
      hellos[std::string(1, static_cast<char>('a' + k))] = {
          .incarnation = k + 1,
          .self = {
              .model = draw.below(3), .gave_up = draw.below(3) == 0, .first_seed = k == first}};
    }
    std::vector<std::string> founders;
    for (const auto& [name, hello] : hellos) {
      BeginningSight sight = two_nodes(Stand::free);
      sight.name = name;
      sight.model = hello.self.model;
      sight.node.first_seed = hello.self.first_seed;
      sight.node.up = nodes;
      sight.heard = hellos;
      sight.heard.erase(name);
      ElasticBeginning beginning(kAgain);
      if (after(beginning, sight, kAgain) == Move::found) {
        founders.push_back(name);
      }
    }
    const bool any_model = std::ranges::any_of(hellos, [](const auto& item) {
      return item.second.self.model > 0 || item.second.self.first_seed;
    });
    REQUIRE(founders.size() == (any_model ? 1 : 0));
    if (!any_model) {
      continue;  // none of them is to begin anew what may be over
    }
    const ElasticHello& founder = hellos[founders[0]];
    for (const auto& [name, hello] : hellos) {
      CHECK(hello.self.model <= founder.self.model);
      const bool as_new = hello.self.model == founder.self.model;
      CHECK((!as_new || founder.self.first_seed || !hello.self.first_seed));
      CHECK((!as_new || founder.self.first_seed || founders[0] <= name));
    }
  }
}

TEST_CASE("epoch beginnings: one that has waited spares a newer one its own wait") {
  BeginningSight sight = two_nodes(Stand::free);
  sight.model = 9;
  ElasticBeginning fresh(kAgain);
  CHECK(fresh.look(sight, Time(0)) == Move::none);
  sight.heard["c"].self.gave_up = true;
  CHECK(fresh.look(sight, Time(1)) == Move::found);
  sight.heard["c"].self.model = 10;
  CHECK(fresh.look(sight, Time(2)) == Move::none);
}

TEST_CASE("epoch beginnings: by a store each waits for itself before another run") {
  BeginningSight sight = two_nodes(Stand::free);
  sight.model = 9;
  sight.founder = BeginningSight::Founder::nobody;
  sight.begun = 1;
  sight.heard["c"].self.gave_up = true;  // perhaps a run before the latest one
  ElasticBeginning fresh(kAgain);
  CHECK(fresh.look(sight, Time(0)) == Move::none);
  CHECK(fresh.look(sight, Time(1)) == Move::none);
  CHECK(after(fresh, sight, 2 * kAgain) == Move::found);
}

TEST_CASE("epoch beginnings: a hello says what was put into it, and nothing else is one") {
  const ElasticHello hello{.incarnation = 7,
                           .history = {1, 2},
                           .steps = 3,
                           .member = true,
                           .self = {.model = 4, .gave_up = true, .stuck = true}};
  auto bytes = encode(hello);
  CHECK(parse_hello(bytes) == hello);
  bytes.back() |= std::byte{32};  // a flag of another version
  CHECK(!parse_hello(bytes));
  bytes.pop_back();
  CHECK(!parse_hello(bytes));
}

TEST_CASE("epoch beginnings: by a store any node begins the first run and then none") {
  using Founder = BeginningSight::Founder;
  for (const bool again : {false, true}) {
    const auto option = again ? std::optional(kAgain) : std::nullopt;
    BeginningSight sight = two_nodes(Stand::free);
    sight.founder = Founder::any;
    CHECK(ElasticBeginning(option).look(sight, Time(0)) ==
          Move::found);  // of b and c it is the first
    sight.name = "d";
    CHECK(ElasticBeginning(option).look(sight, Time(0)) == Move::none);
    sight.name = "b";
    sight.founder = Founder::unknown;
    ElasticBeginning waits(option);
    CHECK(after(waits, sight, 10 * kAgain) == Move::none);
    sight.founder = Founder::nobody;
    sight.begun = 1;
    ElasticBeginning late(option);
    CHECK(after(late, sight, 10 * kAgain) == (again ? Move::found : Move::none));
  }
}

TEST_CASE("epoch beginnings: the node that may begin by the store does unless a run is there") {
  BeginningSight sight = two_nodes(Stand::free);
  sight.founder = BeginningSight::Founder::this_node;
  sight.begun = 1;
  sight.name = "z";
  sight.node.up = 1;
  sight.heard["c"].self.model = 7;
  ElasticBeginning beginning(std::nullopt);
  CHECK(beginning.look(sight, Time(0)) == Move::found);  // else nobody would
  sight.heard["c"].member = true;
  CHECK(beginning.look(sight, Time(0)) == Move::join);
}

TEST_CASE("epoch beginnings: a run that another node begins by the store is waited for anew") {
  for (const Stand stand : {Stand::free, Stand::seeks, Stand::stuck}) {
    BeginningSight sight = two_nodes(stand);
    sight.founder = BeginningSight::Founder::nobody;
    sight.was_in = true;
    sight.begun = 1;
    ElasticBeginning beginning(kAgain);
    CHECK(after(beginning, sight, kAgain - Time(1)) == Move::none);
    sight.begun = 2;
    CHECK(beginning.look(sight, Time(1) + kAgain) == Move::none);
    CHECK_FALSE(beginning.gave_up());
    const Move move = beginning.look(sight, Time(1) + 2 * kAgain);
    CHECK(move == (stand == Stand::free ? Move::found : Move::give_up));
    // A node that has given up does not begin another one beside that.
    sight.stand = Stand::free;
    sight.begun = 3;
    CHECK(beginning.look(sight, Time(2) + 2 * kAgain) == Move::none);
  }
}

}  // namespace sotto::test::elastic_beginning_test
