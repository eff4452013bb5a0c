// What a node of a run by roster says while it finds nobody.
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/sites/nodes/roster_search.h>

namespace sotto::test::roster_search_test {

using sites::RosterTime;

namespace {

std::vector<std::string> kinds(const std::vector<SiteEvent>& events) {
  std::vector<std::string> kinds;
  for (const SiteEvent& event : events) {
    kinds.emplace_back(name_of(event.kind));
  }
  return kinds;
}

}  // namespace

TEST_CASE("roster search: silent seeds and a foreign key are told every ten seconds") {
  RosterSearch search;
  const RosterSearchState state{
      .few = true, .silent = {"a:9000", "b:9000"}, .unknown = {"b:9000"}, .refused = 3};
  CHECK(search.due(RosterTime(9'999), state).empty());
  const auto first = search.due(RosterTime(10'000), state);
  CHECK(kinds(first) == std::vector<std::string>{"seeds-silent", "datagrams-refused"});
  CHECK(first[0].text.find("a:9000, b:9000 (nobody knows the name)") != std::string::npos);
  CHECK(first[1].text.starts_with("3 datagrams"));
  CHECK(search.due(RosterTime(19'000), state).empty());
  // No more have come: only the seeds are still silent.
  CHECK(kinds(search.due(RosterTime(20'000), state)) == std::vector<std::string>{"seeds-silent"});
}

TEST_CASE("roster search: a node that has found enough says seldom what strangers send") {
  RosterSearch search;
  RosterSearchState state{.few = false, .silent = {"a:9000"}, .refused = 1};
  CHECK(search.due(RosterTime(299'999), state).empty());
  CHECK(kinds(search.due(RosterTime(300'000), state)) ==
        std::vector<std::string>{"datagrams-refused"});
  state.refused = 5;
  CHECK(search.due(RosterTime(400'000), state).empty());
  const auto again = search.due(RosterTime(600'000), state);
  REQUIRE(again.size() == 1);
  CHECK(again[0].text.starts_with("4 datagrams"));
}

TEST_CASE("roster search: a node whose others have just left says nothing of it for ten seconds") {
  RosterSearch search;
  RosterSearchState state{.few = false, .asked = {"a:1"}};
  CHECK(search.due(RosterTime(50'000), state).empty());
  state.few = true;
  state.alone = true;
  CHECK(search.due(RosterTime(60'000), state).empty());
  CHECK(search.due(RosterTime(69'999), state).empty());
  CHECK(kinds(search.due(RosterTime(70'000), state)) == std::vector<std::string>{"nobody-heard"});
  // It found them again, and they are gone again.
  state.few = false;
  CHECK(search.due(RosterTime(75'000), state).empty());
  state.few = true;
  CHECK(search.due(RosterTime(85'000), state).empty());
  CHECK(kinds(search.due(RosterTime(95'000), state)) == std::vector<std::string>{"nobody-heard"});
}

TEST_CASE(
    "roster search: a node that hears nobody says whom it asks, also where no seed is silent") {
  RosterSearch search;
  RosterSearchState state{
      .few = true, .alone = true, .address = "10.0.0.1:9000", .asked = {"a:1", "b:2"}};
  const auto asks = search.due(RosterTime(10'000), state);
  REQUIRE(kinds(asks) == std::vector<std::string>{"nobody-heard"});
  CHECK(asks[0].text.find("asks at a:1, b:2") != std::string::npos);
  state.asked.clear();
  const auto waits = search.due(RosterTime(20'000), state);
  REQUIRE(kinds(waits) == std::vector<std::string>{"nobody-heard"});
  CHECK(waits[0].text.find("find it at 10.0.0.1:9000") != std::string::npos);
  state.alone = false;
  CHECK(search.due(RosterTime(30'000), state).empty());
  state.alone = true;
  state.few = false;
  CHECK(search.due(RosterTime(600'000), state).empty());
}

}  // namespace sotto::test::roster_search_test
