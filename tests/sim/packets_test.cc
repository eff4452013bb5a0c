// What packets add to the fluid: turns on links, and acknowledgements that queue behind data.
#include <doctest/doctest.h>

#include <sotto/sim/network/network.h>

namespace sotto::test::packets_test {

namespace {

constexpr SimTime kMs = 1'000'000;
/// 1 MB/s: a packet of 1,500 bytes takes 1.5 ms.
constexpr double kRate = 1e6;
constexpr NetworkModel kTurns = {.packet_bytes = 1500};
constexpr NetworkModel kWindows = {.initial_window_bytes = 10'000, .packet_bytes = 1500};

/// When the last of `bytes` from 0 to 1 and, if `both_ways`, from 1 to 0 have arrived.
SimTime swap_time(const NetworkModel& model, std::uint64_t bytes, bool both_ways) {
  const Platform platform = make_star(2, kRate, 5 * kMs);
  EventQueue queue;
  Network network(platform, model, 1, queue);
  const ConnectionId there = network.connect(platform, 0, 1);
  const ConnectionId back = network.connect(platform, 1, 0);
  network.send(there, bytes);
  if (both_ways) {
    network.send(back, bytes);
  }
  while (network.step()) {
  }
  return queue.now();
}

/// When the last of the messages from each of `senders` to each of `receivers` has arrived, over
/// hosts whose way in is `faster` than their way out.
SimTime crossing_time(int senders, int receivers, double faster) {
  Platform platform(senders + receivers);
  platform.set_default_route({});
  for (Rank host = 0; host < senders + receivers; ++host) {
    platform.set_egress(host, {.bytes_per_s = kRate});
    platform.set_ingress(host, {.bytes_per_s = faster * kRate});
  }
  EventQueue queue;
  Network network(platform, kTurns, 1, queue);
  for (Rank from = 0; from < senders; ++from) {
    for (Rank to = senders; to < senders + receivers; ++to) {
      network.send(network.connect(platform, from, to), 10'000);
    }
  }
  while (network.step()) {
  }
  return queue.now();
}

}  // namespace

TEST_CASE("where a message is not at its narrowest its packets wait for half of each other one") {
  CHECK(crossing_time(1, 1, 1) == 10 * kMs);
  // Only the way out, or only the way in, is shared: that is the share of the fluid.
  CHECK(crossing_time(1, 3, 1) == 30 * kMs + 1);  // a third of the rate, rounded up
  CHECK(crossing_time(3, 1, 1) == 30 * kMs + 1);
  CHECK(crossing_time(2, 2, 1) == 20 * kMs + 750'000);
  CHECK(crossing_time(4, 4, 1) == 40 * kMs + 3 * 750'000);
  // Twice as fast a way in has half of the wait.
  CHECK(crossing_time(2, 2, 2) == 20 * kMs + 375'000);
}

TEST_CASE("acknowledgements follow the data that was in the queue before them") {
  // 10 kB are 10 ms and rate × round trip: one way, the window limits nothing.
  CHECK(swap_time(kWindows, 20'000, false) == 25 * kMs);
  // Both ways, the first acknowledgement leaves behind the window of 10 kB, at 10 ms, and is there
  // at 15 ms; what is left of the message takes 10 ms and the way.
  CHECK(swap_time(kWindows, 20'000, true) == 30 * kMs);
  // The next window holds 20 kB: two such pauses.
  CHECK(swap_time(kWindows, 35'000, true) == 50 * kMs);
  // A message that its window holds waits for nothing.
  CHECK(swap_time(kWindows, 10'000, true) == 15 * kMs);
}

TEST_CASE("a cut on the way back does not hold a window for ever") {
  Platform platform = make_star(2, kRate, 5 * kMs);
  const std::vector<LinkId> way_back = platform.route(1, 0).links;
  platform.cut(way_back, 4 * kMs, 1'000 * kMs);
  EventQueue queue;
  Network network(platform, kWindows, 1, queue);
  const ConnectionId there = network.connect(platform, 0, 1);
  const ConnectionId back = network.connect(platform, 1, 0);
  network.send(there, 20'000);
  network.send(back, 20'000);
  CHECK(network.step());
  CHECK(network.step());
  CHECK(queue.now() > 1'000 * kMs);
  CHECK_FALSE(network.step());
}

}  // namespace sotto::test::packets_test
