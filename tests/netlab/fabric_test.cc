// The emulated links, in a time of the test's own: rates, delays, fair shares, nothing lost.
#include <algorithm>
#include <map>
#include <random>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "bench/netlab/network/fabric.h"

namespace sotto::test::fabric_test {

using namespace sotto::netlab;

namespace {

constexpr SimTime kMs = 1'000'000;
constexpr double kMbit = 125'000;

Packet packet(Host from, Host to, std::uint32_t bytes = 1500) {
  return {.from = from, .to = to, .shaped = true, .wire_bytes = bytes, .bytes = {}};
}

struct Delivery {
  SimTime time = 0;
  Host from = 0;
  Host to = 0;
  std::uint32_t bytes = 0;
};

/// Does all that is due, at its time.
std::vector<Delivery> run(Fabric& fabric, SimTime until = kNever) {
  std::vector<Delivery> found;
  while (fabric.next() != kNever && fabric.next() <= until) {
    const SimTime due = fabric.next();
    fabric.advance(due, [&](const Packet& p) {
      found.push_back({due, p.from, p.to, p.wire_bytes});
    });
  }
  return found;
}

std::map<Host, double> bytes_from(const std::vector<Delivery>& deliveries, SimTime until) {
  std::map<Host, double> bytes;
  for (const Delivery& delivery : deliveries) {
    bytes[delivery.from] += delivery.time <= until ? delivery.bytes : 0;
  }
  return bytes;
}

}  // namespace

TEST_CASE("a packet takes its size over the rate, and the latency") {
  Fabric fabric(2, 1'000'000, 1);
  fabric.set_link(0, 0, 1, {.bytes_per_s = 10 * kMbit, .latency = 20 * kMs});
  fabric.accept(5 * kMs, packet(0, 1));
  const auto found = run(fabric);
  REQUIRE(found.size() == 1);
  CHECK(found[0].time == 5 * kMs + 1'200'000 + 20 * kMs);
}

TEST_CASE("ways out, links and ways in of one rate cost a packet's time once") {
  Fabric fabric(2, 1'000'000, 1);
  fabric.set_link(0, 0, 1, {.bytes_per_s = 10 * kMbit, .latency = kMs});
  fabric.set_host(0, 10 * kMbit, 10 * kMbit);
  fabric.set_host(1, 10 * kMbit, 10 * kMbit);
  for (int i = 0; i < 100; ++i) {
    fabric.accept(0, packet(0, 1));
  }
  const auto found = run(fabric);
  REQUIRE(found.size() == 100);
  CHECK(found[0].time == 1'200'000 + kMs);
  CHECK(found[99].time == 100 * 1'200'000 + kMs);
}

TEST_CASE("the slowest part of the way decides the rate") {
  for (const int slowest : {0, 1, 2}) {
    CAPTURE(slowest);
    Fabric fabric(2, 10'000'000, 1);
    const auto rate = [&](int part) { return (part == slowest ? 1 : 10) * kMbit; };
    fabric.set_host(0, rate(0), 100 * kMbit);
    fabric.set_link(0, 0, 1, {.bytes_per_s = rate(1), .latency = 0});
    fabric.set_host(1, 100 * kMbit, rate(2));
    for (int i = 0; i < 50; ++i) {
      fabric.accept(0, packet(0, 1));
    }
    CHECK(run(fabric).back().time == doctest::Approx(50 * 12e6).epsilon(0.03));
  }
}

TEST_CASE("a trunk takes turns over the pairs that cross it, and adds no packet's time") {
  Fabric fabric(4, 10'000'000, 1);
  for (Host host = 0; host < 4; ++host) {
    fabric.set_host(host, 100 * kMbit, 100 * kMbit);
  }
  const int trunk = fabric.add_trunk(10 * kMbit);
  for (const Host from : {0, 1}) {
    for (const Host to : {2, 3}) {
      fabric.set_link(0, from, to, {.latency = 5 * kMs});
      fabric.cross_trunk(from, to, trunk);
    }
  }
  fabric.set_link(0, 0, 1, {.latency = 5 * kMs});
  CHECK(fabric.packets_at_once(0, 2) == 1);  // 10 Mbit/s
  CHECK(fabric.packets_at_once(0, 1) == 4);
  // Two pairs of host 0 and one of host 1 have a third each; what crosses no trunk is not held up.
  for (int i = 0; i < 300; ++i) {
    fabric.accept(0, packet(0, 2));
    fabric.accept(0, packet(0, 3));
    fabric.accept(0, packet(1, 2));
  }
  fabric.accept(0, packet(0, 1));
  std::map<std::pair<Host, Host>, double> bytes;
  SimTime last = 0;
  for (const Delivery& delivery : run(fabric)) {
    bytes[{delivery.from, delivery.to}] += delivery.time <= 600 * kMs ? delivery.bytes : 0;
    last = delivery.from == 0 && delivery.to == 1 ? last : delivery.time;
  }
  const double third = 0.595 * 10 * kMbit / 3;
  CHECK(bytes[{0, 2}] == doctest::Approx(third).epsilon(0.02));
  CHECK(bytes[{0, 3}] == doctest::Approx(third).epsilon(0.02));
  CHECK(bytes[{1, 2}] == doctest::Approx(third).epsilon(0.02));
  CHECK(bytes[{0, 1}] == 1500);
  CHECK(last == doctest::Approx(900 * 1.2e6 + 5e6).epsilon(0.01));
}

TEST_CASE("the slowest of several trunks decides, whatever their order") {
  for (const int slowest : {0, 1, 2}) {
    CAPTURE(slowest);
    Fabric fabric(2, 10'000'000, 1);
    fabric.set_link(0, 0, 1, {.latency = 3 * kMs});
    fabric.set_host(1, kUnlimited, 50 * kMbit);
    for (int i = 0; i < 3; ++i) {
      fabric.cross_trunk(0, 1, fabric.add_trunk((i == slowest ? 5 : 20) * kMbit));
    }
    for (int i = 0; i < 100; ++i) {
      fabric.accept(0, packet(0, 1));
    }
    const auto found = run(fabric);
    REQUIRE(found.size() == 100);
    CHECK(found.back().time == doctest::Approx(100 * 2.4e6 + 3e6).epsilon(0.02));
    CHECK(fabric.carried(0, 1).packets == 100);
  }
}

TEST_CASE("the shortest latency is that of all links between two hosts") {
  Fabric fabric(3, 1'000'000, 1);
  CHECK(fabric.shortest_latency() == 0);
  for (Host from = 0; from < 3; ++from) {
    for (Host to = 0; to < 3; ++to) {
      fabric.set_link(0, from, to, {.latency = from == to ? 0 : 20 * kMs});
    }
  }
  CHECK(fabric.shortest_latency() == 20 * kMs);
  fabric.set_link(0, 2, 1, {.latency = 15 * kMs, .jitter = 4 * kMs});
  CHECK(fabric.shortest_latency() == 11 * kMs);
  fabric.set_link(0, 2, 1, {.latency = 30 * kMs});
  CHECK(fabric.shortest_latency() == 20 * kMs);
}

TEST_CASE("as many packets go as one as TCP hardly feels, and only where all fare alike") {
  Fabric fabric(2, 1'000'000, 1);
  CHECK(fabric.packets_at_once(0, 1) == 64);  // unlimited
  fabric.set_link(0, 0, 1, {.bytes_per_s = 100 * kMbit, .latency = 20 * kMs});
  CHECK(fabric.packets_at_once(0, 1) == 4);  // 480 µs
  fabric.set_host(1, kUnlimited, 48 * kMbit);
  CHECK(fabric.packets_at_once(0, 1) == 2);
  fabric.set_host(0, 5 * kMbit, kUnlimited);
  CHECK(fabric.packets_at_once(0, 1) == 1);
  fabric.set_link(0, 1, 0, {.bytes_per_s = 0, .latency = 0});
  CHECK(fabric.packets_at_once(1, 0) == 1);
  for (const LinkShape& shape : {LinkShape{.jitter = kMs}, LinkShape{.loss = 0.01}}) {
    Fabric other(2, 1'000'000, 1);
    other.set_link(0, 0, 1, shape);
    CHECK(other.packets_at_once(0, 1) == 1);
  }
}

TEST_CASE("waking late delays packets and slows nothing") {
  Fabric fabric(2, 10'000'000, 1);
  fabric.set_link(0, 0, 1, {.bytes_per_s = 100 * kMbit, .latency = 3 * kMs});
  for (int i = 0; i < 1000; ++i) {
    fabric.accept(0, packet(0, 1));
  }
  SimTime last = 0;
  std::size_t count = 0;
  for (SimTime now = 0; now < 200 * kMs; now += kMs) {  // looks at it only once a millisecond
    fabric.advance(now, [&](const Packet&) {
      last = now;
      ++count;
    });
  }
  CHECK(count == 1000);
  CHECK(last == 123 * kMs);  // 1000 × 120 µs + 3 ms
}

TEST_CASE("a way out is shared fairly over the receivers, whatever the sizes of the packets") {
  Fabric fabric(3, 100'000'000, 1);
  fabric.set_host(0, 10 * kMbit, 10 * kMbit);
  for (int i = 0; i < 2000; ++i) {
    fabric.accept(0, packet(0, 1, 1500));
    for (int k = 0; k < 5; ++k) {
      fabric.accept(0, packet(0, 2, 300));
    }
  }
  std::map<Host, double> bytes;
  for (const Delivery& delivery : run(fabric, 1000 * kMs)) {
    bytes[delivery.to] += delivery.bytes;
  }
  CHECK(bytes[1] + bytes[2] == doctest::Approx(1.25e6).epsilon(0.01));
  CHECK(bytes[1] == doctest::Approx(bytes[2]).epsilon(0.01));
}

TEST_CASE("a way in is shared fairly over the senders") {
  Fabric fabric(4, 100'000'000, 1);
  fabric.set_host(3, 10 * kMbit, 10 * kMbit);
  for (int i = 0; i < 2000; ++i) {
    for (const Host from : {0, 1, 2}) {
      fabric.accept(0, packet(from, 3, from == 0 ? 1500 : 500));
    }
  }
  auto bytes = bytes_from(run(fabric), 600 * kMs);
  CHECK(bytes[0] == doctest::Approx(bytes[1]).epsilon(0.02));
  CHECK(bytes[1] == doctest::Approx(bytes[2]).epsilon(0.02));
}

TEST_CASE("what one link cannot take, the others of a way out get") {
  Fabric fabric(3, 100'000'000, 1);
  fabric.set_host(0, 10 * kMbit, 10 * kMbit);
  fabric.set_link(0, 0, 1, {.bytes_per_s = kMbit, .latency = 0});
  for (int i = 0; i < 2000; ++i) {
    fabric.accept(0, packet(0, 1));
    fabric.accept(0, packet(0, 2));
  }
  std::map<Host, double> bytes;
  for (const Delivery& delivery : run(fabric, 1000 * kMs)) {
    bytes[delivery.to] += delivery.bytes;
  }
  CHECK(bytes[1] == doctest::Approx(1.25e5).epsilon(0.02));
  CHECK(bytes[2] == doctest::Approx(1.125e6).epsilon(0.02));
}

TEST_CASE("a link that is down holds its packets until it heals") {
  Fabric fabric(2, 1'000'000, 1);
  fabric.set_link(0, 0, 1, {.bytes_per_s = 0, .latency = kMs});
  fabric.accept(kMs, packet(0, 1));
  CHECK(run(fabric, 100 * kMs).empty());
  fabric.set_link(100 * kMs, 0, 1, {.bytes_per_s = 10 * kMbit, .latency = kMs});
  const auto found = run(fabric);
  REQUIRE(found.size() == 1);
  CHECK(found[0].time == 102'200'000);
}

TEST_CASE("jitter keeps the order and its bounds, and loss comes as often as declared") {
  Fabric fabric(2, 1'000'000, 7);
  fabric.set_link(0, 0, 1,
                  {.bytes_per_s = kUnlimited, .latency = 10 * kMs, .jitter = 4 * kMs, .loss = 0.1});
  SimTime now = 0;
  std::uint32_t sent = 0;
  std::vector<std::uint32_t> arrived;
  const Fabric::Deliver deliver = [&](const Packet& p) { arrived.push_back(p.wire_bytes); };
  for (; sent < 5000; ++sent, now += kMs) {
    fabric.accept(now, packet(0, 1, 100 + sent));
    fabric.advance(now, deliver);
  }
  fabric.advance(now + 14 * kMs, deliver);
  CHECK(fabric.next() == kNever);
  CHECK(std::is_sorted(arrived.begin(), arrived.end()));
  const netlab::Carried carried = fabric.carried(0, 1);
  CHECK(carried.lost + carried.packets == 5000);
  CHECK(carried.lost > 400);  // five standard deviations about 500
  CHECK(carried.lost < 606);
}

TEST_CASE("packets are lost in bursts of the declared mean length") {
  Fabric fabric(2, 1'000'000, 7);
  fabric.set_link(0, 0, 1,
                  {.bytes_per_s = kUnlimited, .latency = kMs, .loss = 0.1, .loss_burst = 5});
  int bursts = 0;
  std::uint64_t lost = 0;
  bool before = false;
  for (SimTime now = 0; now < 50'000 * kMs; now += kMs) {
    fabric.accept(now, packet(0, 1));
    fabric.advance(now, [](const Packet&) {});
    const bool one = fabric.carried(0, 1).lost > lost;
    lost = fabric.carried(0, 1).lost;
    bursts += one && !before ? 1 : 0;
    before = one;
  }
  // About 1,000 bursts: four standard deviations.
  CHECK(static_cast<double>(lost) / bursts == doctest::Approx(5).epsilon(0.13));
  CHECK(static_cast<double>(lost) == doctest::Approx(5'000).epsilon(0.2));
}

TEST_CASE("what enters leaves: random traffic over random links, seed printed") {
  for (std::uint32_t seed = 1; seed <= 20; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    const auto pick = [&](int below) {
      return static_cast<int>(random() % static_cast<std::uint32_t>(below));
    };
    constexpr int kHosts = 5;
    Fabric fabric(kHosts, 60'000, seed);
    for (Host from = 0; from < kHosts; ++from) {
      if (pick(2) == 0) {
        fabric.set_host(from, (1 + pick(20)) * kMbit, (1 + pick(20)) * kMbit);
      }
      for (Host to = 0; to < kHosts; ++to) {
        fabric.set_link(0, from, to,
                        {.bytes_per_s = (1 + pick(30)) * kMbit, .latency = pick(9) * kMs});
      }
    }
    std::uint64_t entered = 0;
    for (SimTime now = 0; now < 500 * kMs; now += kMs) {
      const Host from = pick(kHosts);
      const Host to = (from + 1 + pick(kHosts - 1)) % kHosts;
      fabric.accept(now, packet(from, to, static_cast<std::uint32_t>(40 + pick(1460))));
      ++entered;
      fabric.advance(now, [](const Packet&) {});
    }
    (void)run(fabric);
    std::uint64_t left = 0;
    for (Host from = 0; from < kHosts; ++from) {
      for (Host to = 0; to < kHosts; ++to) {
        left += fabric.carried(from, to).packets + fabric.carried(from, to).dropped;
      }
    }
    CHECK(left == entered);
  }
}

}  // namespace sotto::test::fabric_test
