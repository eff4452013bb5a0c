#include <sotto/sim/network/link_states.h>

#include <vector>

#include <doctest/doctest.h>

namespace sotto::test::link_states_test {

namespace {

constexpr SimTime kMs = 1'000'000;

/// A wide link, a narrow one that loses packets, and one without a limit.
Platform three_links() {
  Platform platform(2);
  const std::vector<LinkId> way = {
      platform.add_link({.bytes_per_s = 4e6, .latency = 2 * kMs}),
      platform.add_link({.bytes_per_s = 1e6, .latency = 3 * kMs, .loss = 0.25}),
      platform.add_link({.latency = kMs, .loss = 0.5})};
  platform.set_route(0, 1, way);
  return platform;
}

const std::vector<LinkId> kWay = {0, 1, 2};

}  // namespace

TEST_CASE("a way is as slow as the sum of its links and as narrow as the narrowest") {
  const LinkStates links(three_links(), 1);
  CHECK(links.latency_along(kWay) == 6 * kMs);
  CHECK(links.narrowest(kWay) == 1e6);
  CHECK(links.chance_of_passing(kWay) == 0.375);
  CHECK(links.open(kWay));
  CHECK(links.latency_along({}) == 0);
  CHECK(links.narrowest({}) == kUnlimited);
  CHECK(links.chance_of_passing({}) == 1);
  CHECK(links.open({}));
  CHECK(links[2].unlimited);
}

TEST_CASE("a link that changes offers what it could carry before and after, and is cut at 0") {
  LinkStates links(three_links(), 0.5);
  links.change({.at = 1'000 * kMs, .link = 0, .bytes_per_s = 0, .latency = 9 * kMs});
  CHECK(links.offered(0, 1'000 * kMs) == 2e6);
  CHECK(links.offered(0, 3'000 * kMs) == 2e6);
  CHECK_FALSE(links.open(kWay));
  CHECK(links.latency_along(kWay) == 13 * kMs);
  links.change({.at = 3'000 * kMs, .link = 0, .bytes_per_s = 2e6, .latency = 9 * kMs});
  CHECK(links.offered(0, 4'000 * kMs) == 3e6);
  CHECK(links.open(kWay));
}

TEST_CASE("users are noted of links that change alone, each once") {
  LinkStates links(three_links(), 1);
  links.expect_change(2);
  links.expect_change(2);
  CHECK(links.changes(2));
  CHECK_FALSE(links[2].unlimited);
  for (const std::uint32_t connection : {0U, 0U, 4U}) {
    links.add_user(0, connection);
    links.add_user(2, connection);
  }
  CHECK(links.users(0).empty());
  CHECK(std::vector(links.users(2).begin(), links.users(2).end()) ==
        std::vector<std::uint32_t>{0, 4});
}

TEST_CASE("acknowledgements take what they need of a link, and half of it at most") {
  LinkStates links(three_links(), 1);
  links.add_acknowledgements(1, 1e5);
  CHECK(links.left_for_messages(1) == 9e5);
  links.add_acknowledgements(1, 1e6);
  CHECK(links.left_for_messages(1) == 5e5);
  links.add_acknowledgements(1, -1.2e6);
  CHECK(links.left_for_messages(1) == 1e6);
  CHECK(links.left_for_messages(2) == kFastest);
}

TEST_CASE("a packet waits for half of one of each other flow, except where its way is narrowest") {
  LinkStates links(three_links(), 1);
  CHECK(links.queueing_delay(kWay, 1'000) == 0);
  links.count_flow(kWay, true);
  CHECK(links.queueing_delay(kWay, 1'000) == 0);  // its own
  links.count_flow(kWay, true);
  links.count_flow(std::vector<LinkId>{0}, true);
  // Two others on the wide link, 1,000 bytes at 4 MB/s; one on the narrow one, 500 at 1 MB/s.
  CHECK(links.queueing_delay(kWay, 1'000) == kMs / 4);
  links.count_flow(kWay, false);
  CHECK(links.queueing_delay(kWay, 1'000) == 0);
}

TEST_CASE("a factor of bandwidth is in what is narrowest, and in what a packet waits for") {
  LinkStates links(three_links(), 0.5);
  CHECK(links.narrowest(kWay) == 5e5);
  for (int flows = 0; flows < 2; ++flows) {
    links.count_flow(kWay, true);
  }
  links.count_flow(std::vector<LinkId>{0}, true);
  CHECK(links.queueing_delay(kWay, 1'000) == kMs / 2);
}

}  // namespace sotto::test::link_states_test
