// The addresses that a node asks who is there.
#include <sotto/sites/roster/roster_seeds.h>

#include <chrono>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>

namespace sotto::test::roster_seeds_test {

using namespace std::chrono_literals;
using sites::OtherRun;
using sites::RosterSeeds;
using sites::RosterTime;
using sites::SeedProbe;

namespace {

/// Seeds, and the number of the last probe.
struct Asking {
  std::vector<SeedProbe> due(RosterTime now, const std::set<std::string>& reached = {}) {
    return seeds.due(reached, {}, now, [this] { return ++drawn; });
  }
  RosterSeeds seeds;
  std::uint64_t drawn = 0;
};

}  // namespace

TEST_CASE("a seed is asked after pauses that grow, unless it is there or this node itself") {
  Asking asking{.seeds = RosterSeeds({"a:1", "b:1", "me:1"}, "me:1", 0ms)};
  CHECK(asking.due(0ms).size() == 2);  // not this node
  CHECK(asking.due(500ms).empty());
  CHECK(asking.due(1'000ms, {"a:1"}).size() == 1);
  CHECK(asking.seeds.note_answer(asking.drawn));
  CHECK_FALSE(asking.seeds.note_answer(asking.drawn));  // once
  asking.seeds.note_own("b:1");
  CHECK(asking.due(60'000ms, {"a:1"}).empty());
  CHECK(asking.seeds.asked() == std::vector<std::string>{"a:1"});
  CHECK_FALSE(asking.seeds.nobody());
  asking.seeds.note_own("a:1");
  CHECK(asking.seeds.nobody());
}

TEST_CASE("a seed that does not answer is silent after six seconds") {
  Asking asking{.seeds = RosterSeeds({"a:1"}, "me:1", 0ms)};
  (void)asking.due(0ms);
  (void)asking.due(RosterSeeds::kSilentAfter - 1ms);
  CHECK(asking.seeds.silent().empty());
  (void)asking.due(RosterSeeds::kSilentAfter);
  CHECK(asking.seeds.silent().size() == 1);
}

TEST_CASE("another run at a lease is believed once its node is known to be there") {
  Asking asking{.seeds = RosterSeeds({}, "me:1", 0ms)};
  const OtherRun other = {.address = "a:1"};
  asking.seeds.set({{.address = "a:1", .renewals = 1000}}, 0ms);
  REQUIRE(asking.due(0ms).size() == 1);
  CHECK_FALSE(asking.seeds.note_other(99, other).has_value());  // nobody asked
  CHECK(asking.seeds.note_other(asking.drawn, other) == false);
  CHECK(asking.seeds.strangers().size() == 1);
  CHECK(asking.seeds.asked().empty());
  CHECK(asking.due(60'000ms).empty());
  SUBCASE("after renewals of the lease") {
    asking.seeds.set({{.address = "a:1", .renewals = 1000 + RosterSeeds::kRenewalsSeen}}, 0ms);
    REQUIRE(asking.due(60'000ms).size() == 1);
    CHECK(asking.seeds.note_other(asking.drawn, other) == true);
  }
  SUBCASE("and asked at once where the lease is another node's") {
    asking.seeds.set({{.address = "a:1", .renewals = 0}}, 0ms);
    CHECK(asking.seeds.strangers().empty());
    CHECK(asking.due(60'000ms).size() == 1);
  }
}

}  // namespace sotto::test::roster_seeds_test
