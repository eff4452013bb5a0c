// Queues that overflow (LinkSpec::queue_bytes), beside what TCP is known to make of them.
#include <algorithm>
#include <cstddef>
#include <random>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/base/error.h>
#include <sotto/sim/network/network.h>

namespace sotto::test::queue_test {

namespace {

constexpr SimTime kMs = 1'000'000;

/// Many hosts that send to host 0, whose way in has a queue.
Platform incast(int senders, double queue_bytes) {
  Platform platform(senders + 1);
  platform.set_default_route({});
  for (Rank host = 0; host <= senders; ++host) {
    (void)platform.set_egress(host, {.bytes_per_s = 12.5e6, .latency = 1 * kMs});
  }
  (void)platform.set_ingress(0, {.bytes_per_s = 12.5e6, .queue_bytes = queue_bytes});
  return platform;
}

/// When all have sent a message to host 0, which got it.
double gathered_s(const Platform& platform, std::uint64_t bytes,
                  NetworkModel model = NetworkModel::linux_tcp()) {
  EventQueue queue;
  Network network(platform, model, 1, queue);
  for (Rank sender = 1; sender < platform.hosts(); ++sender) {
    network.send(network.connect(platform, sender, 0), bytes);
  }
  for (Rank sender = 1; sender < platform.hosts(); ++sender) {
    REQUIRE(network.step());
  }
  return to_seconds(queue.now());
}

/// The share of 10 Mbit/s that a long Reno stream takes, over 40 ms there and back.
double share_of_link(double queue_bytes) {
  Platform platform(2);
  platform.set_route(
      0, 1,
      {platform.add_link(
          {.bytes_per_s = 1.25e6, .latency = 20 * kMs, .queue_bytes = queue_bytes})});
  platform.set_route(1, 0, {platform.add_link({.bytes_per_s = 1.25e6, .latency = 20 * kMs})});
  EventQueue queue;
  Network network(platform, NetworkModel::linux_tcp(), 1, queue);
  const ConnectionId connection = network.connect(platform, 0, 1);
  constexpr std::uint64_t kBytes = 2'000'000;
  network.send(connection, kBytes);  // slow start, and the losses at its end
  REQUIRE(network.step());
  const SimTime begun = queue.now();
  constexpr int kMessages = 40;
  for (int i = 0; i < kMessages; ++i) {
    network.send(connection, kBytes);
  }
  for (int i = 0; i < kMessages; ++i) {
    REQUIRE(network.step());
  }
  return kMessages * static_cast<double>(kBytes) / 1.25e6 / to_seconds(queue.now() - begun);
}

}  // namespace

TEST_CASE("a queue as long as rate × round trip keeps a link busy, and a short one does not") {
  // 10 Mbit/s × 40 ms are 50 kB. A window that is halved when nothing waits any more sends three
  // quarters of what it could, on average; one that filled such a queue too is never too small.
  const double whole = share_of_link(60'000);
  const double some = share_of_link(25'000);
  const double least = share_of_link(6'000);
  MESSAGE("shares of the link: " << whole << ", " << some << ", " << least);
  CHECK(whole > 0.95);
  CHECK(whole < 1.001);
  CHECK(least > 0.65);
  CHECK(least < 0.9);
  CHECK(least < some);
  CHECK(some < whole);
}

TEST_CASE("a queue that never fills changes nothing but that packets go one by one") {
  for (const int senders : {1, 4, 12}) {
    CAPTURE(senders);
    const double fluid = gathered_s(incast(senders, kUnlimited), 400'000);
    CHECK(gathered_s(incast(senders, 1e9), 400'000) == doctest::Approx(fluid).epsilon(0.05));
  }
}

TEST_CASE("many that send to one at once collapse where its queue is short") {
  // 40 messages of 64 kB take 0.2 s; windows of ten packets each are 600 kB at once.
  const double fluid = 40 * 64'000 / 12.5e6;
  const double long_queue = gathered_s(incast(40, 4e6), 64'000);
  const double short_queue = gathered_s(incast(40, 30'000), 64'000);
  CHECK(long_queue == doctest::Approx(fluid).epsilon(0.1));
  // Whole windows are lost, and their senders wait for a time-out of 200 ms at least.
  MESSAGE("seconds: " << fluid << ", " << long_queue << ", " << short_queue);
  CHECK(short_queue > fluid + 0.2);
}

TEST_CASE("without slow start a queue is without effect") {
  CHECK(gathered_s(incast(7, 1'500), 100'000, {}) ==
        gathered_s(incast(7, kUnlimited), 100'000, {}));
}

TEST_CASE("whatever the queues, all messages arrive, once each and in order, also after an abort") {
  constexpr std::uint64_t kSeed = 20261130;
  std::mt19937_64 random(kSeed);
  const auto figure = [&](double least, double most) {
    return std::uniform_real_distribution<double>(least, most)(random);
  };
  for (int number = 0; number < 60; ++number) {
    CAPTURE(kSeed);
    CAPTURE(number);
    const int hosts = 2 + number % 6;
    Platform platform(hosts);
    const LinkId trunk = platform.add_link({.bytes_per_s = figure(1e5, 2e6),
                                            .latency = static_cast<SimTime>(figure(0, 3e7)),
                                            .queue_bytes = figure(1'500, 60'000)});
    platform.set_default_route({trunk});
    for (Rank host = 0; host < hosts; ++host) {
      (void)platform.set_egress(
          host, {.bytes_per_s = figure(1e5, 2e6), .queue_bytes = figure(1'500, 60'000)});
      (void)platform.set_ingress(host, {.bytes_per_s = figure(1e5, 2e6),
                                        .loss = number % 3 == 0 ? figure(0, 0.05) : 0,
                                        .queue_bytes = figure(1'500, 60'000)});
    }
    NetworkModel model = NetworkModel::linux_tcp();
    model.congestion = static_cast<Congestion>(number % 3);
    EventQueue queue;
    Network network(platform, model, static_cast<std::uint64_t>(number), queue);
    std::vector<std::vector<std::uint64_t>> due;
    for (Rank from = 0; from < hosts; ++from) {
      for (Rank to = 0; to < hosts; ++to) {
        if (from == to) {
          continue;
        }
        const ConnectionId id = network.connect(platform, from, to);
        due.emplace_back();
        for (int i = 0; i < 3; ++i) {
          due.back().push_back(static_cast<std::uint64_t>(figure(1, 50'000)));
          network.send(id, due.back().back());
        }
      }
    }
    for (int i = 0; i < 200 && !queue.empty(); ++i) {
      network.settle();
      if (const auto arrival = network.handle(queue.pop())) {
        auto& of = due[arrival->connection];
        REQUIRE(arrival->bytes == of.front());
        of.erase(of.begin());
      }
    }
    network.abort(0);  // what waited makes room for others
    due[0] = {7'000};
    network.send(0, 7'000);
    std::size_t left = 0;
    for (const auto& of : due) {
      left += of.size();
    }
    for (; left > 0; --left) {
      const auto arrival = network.step();
      REQUIRE(arrival);
      auto& of = due[arrival->connection];
      REQUIRE_FALSE(of.empty());
      REQUIRE(arrival->bytes == of.front());
      of.erase(of.begin());
    }
    CHECK_FALSE(network.step());
  }
}

TEST_CASE("a queue without room for a packet is refused") {
  Platform platform(2);
  for (const double bytes : {0.0, 1499.0, -1.0}) {
    CHECK_THROWS_AS((void)platform.add_link({.queue_bytes = bytes}), Error);
  }
}

}  // namespace sotto::test::queue_test
