// The parts that a Network is made of, each by itself.
#include <array>

#include <doctest/doctest.h>

#include <sotto/sim/network/internal/connection_pairs.h>
#include <sotto/sim/network/internal/connection_ways.h>
#include <sotto/sim/network/internal/flows.h>
#include <sotto/sim/network/internal/link_events.h>

namespace sotto::test::network_parts_test {

namespace {

constexpr SimTime kMs = 1'000'000;

/// Host 0 reaches host 1 in 10 ms at 1 MB/s, and host 1 host 0 in 30 ms; host 2 hears only.
struct ThreeHosts {
  ThreeHosts() : platform(3) {
    there = platform.add_link({.bytes_per_s = 1e6, .latency = 10 * kMs});
    back = platform.add_link({.bytes_per_s = 2e6, .latency = 30 * kMs});
    platform.set_route(0, 1, {there});
    platform.set_route(1, 0, {back});
    platform.set_route(0, 2, {there});
  }

  Platform platform;
  LinkId there = 0;
  LinkId back = 0;
};

}  // namespace

TEST_CASE("a connection is paired with the first one the other way") {
  ConnectionPairs pairs;
  pairs.add(0, 4, 7);
  CHECK_FALSE(pairs.reverse(0));
  pairs.add(3, 7, 4);
  CHECK(pairs.reverse(0) == 3);
  CHECK(pairs.reverse(3) == 0);
  CHECK_FALSE(pairs.reverse(1));
  pairs.add(5, 7, 4);
  CHECK(pairs.reverse(5) == 0);
  CHECK(pairs.reverse(3) == 0);
}

TEST_CASE("a connection's round trip goes there and back, or there twice where no way leads back") {
  const ThreeHosts hosts;
  ConnectionWays ways(hosts.platform, {.latency_factor = 2}, 1);
  const ConnectionId paired = ways.add(hosts.platform, 0, 1);
  const ConnectionId lone = ways.add(hosts.platform, 0, 2);
  CHECK(ways.latency(paired) == 20 * kMs);
  CHECK(ways.latency_back(paired) == 60 * kMs);
  CHECK(ways.round_trip(paired) == 40 * kMs);
  CHECK(ways.back(lone).empty());
  CHECK(ways.latency_back(lone) == 20 * kMs);
  CHECK(ways.round_trip(lone) == 20 * kMs);
  ways.links().change({.link = hosts.there, .bytes_per_s = 0, .latency = 15 * kMs});
  ways.update(paired);
  CHECK(ways.latency(paired) == 30 * kMs);
  CHECK_FALSE(ways.open(paired));
  CHECK(ways.open_back(paired));
}

TEST_CASE("a flow's next event takes the place of the one before, and what has left is booked") {
  const ThreeHosts hosts;
  EventQueue queue;
  ConnectionWays ways(hosts.platform, {}, 1);
  Flows flows(hosts.platform, {}, ways, queue);
  const ConnectionId id = ways.add(hosts.platform, 0, 1);
  flows.add();
  flows.set_remaining(id, 5'000);
  flows.start(id);
  CHECK_FALSE(flows.advance(id));
  REQUIRE(flows.settle().size() == 1);
  flows.take_rate(id);
  flows.expect_end(id);
  queue.push({.time = 2 * kMs, .subject = id, .kind = Network::kKinds});
  CHECK(queue.pop().kind == Network::kKinds);
  CHECK(flows.advance(id) == doctest::Approx(2'000));
  CHECK(flows[id].remaining == doctest::Approx(3'000));
  flows.set_remaining(id, 1'000);
  flows.expect_end(id);
  const Event sooner = queue.pop();
  CHECK(sooner.time == 3 * kMs);
  CHECK(flows.expects(sooner));
  const Event outdated = queue.pop();
  CHECK(outdated.time == 5 * kMs);
  CHECK_FALSE(flows.expects(outdated));
}

TEST_CASE("links' planned changes come in their order, and say what holds from then on") {
  ThreeHosts hosts;
  hosts.platform.add_change({.at = 7 * kMs, .link = hosts.back, .bytes_per_s = 3e6});
  hosts.platform.add_change({.at = 4 * kMs, .link = hosts.there, .bytes_per_s = 0});
  EventQueue queue;
  LinkEvents events(hosts.platform, queue);
  CHECK(ConnectionWays(hosts.platform, {}, 1).links().changes(hosts.back));
  CHECK(events.steps_queued() == 0);
  for (const LinkId link : std::array{hosts.there, hosts.back}) {
    const Event event = queue.pop();
    REQUIRE(LinkEvents::takes(event));
    const LinkChange change = events.take(event);
    CHECK(change.link == link);
    CHECK(change.at == queue.now());
  }
  CHECK(queue.empty());
}

}  // namespace sotto::test::network_parts_test
