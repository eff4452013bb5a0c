#include <sotto/sim/network/tcp/congestion_window.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/base/philox.h>
#include <sotto/sim/network/network.h>

namespace sotto::test::congestion_window_test {

namespace {

constexpr SimTime kMs = 1'000'000;

/// Hosts 0 and 2 send to 1 over one link, host 0 from afar: a round trip of `round_trip`.
Platform shared_link(double bytes_per_s, SimTime round_trip) {
  Platform platform(3);
  const LinkId shared = platform.add_link({.bytes_per_s = bytes_per_s});
  const LinkId far = platform.add_link({.latency = round_trip / 2});
  const LinkId back = platform.add_link({.latency = round_trip - round_trip / 2});
  platform.set_route(0, 1, {far, shared});
  platform.set_route(1, 0, {back});
  platform.set_route(2, 1, {shared});
  return platform;
}

/// A connection of host 0, messages over which are timed one by one.
class Line {
 public:
  Line(double bytes_per_s, SimTime round_trip, double window)
      : platform_(shared_link(bytes_per_s, round_trip)),
        network_(platform_, {.initial_window_bytes = window}, 1, queue_),
        line_(network_.connect(platform_, 0, 1)) {}

  SimTime time(std::uint64_t bytes) {
    const SimTime sent = queue_.now();
    network_.send(line_, bytes);
    REQUIRE(network_.step());
    return queue_.now() - sent;
  }
  void wait(SimTime span) {
    queue_.push({.time = queue_.now() + span, .kind = Network::kKinds});
    queue_.pop();
  }
  Network& network() { return network_; }

 private:
  Platform platform_;
  EventQueue queue_;
  Network network_;
  ConnectionId line_;
};

}  // namespace

TEST_CASE("1 MB over 100 Mbit/s and 100 ms from 10 segments takes 657 ms") {
  // Windows of 14,480 × (1 + 2 + 4 + 8 + 16 + 32) = 912,240 bytes take a round trip each; the next
  // would be 926,720 bytes: the other 87,760 leave at 12.5 MB/s, and arrive 50 ms later.
  Line line(12.5e6, 100 * kMs, 14'480);
  CHECK(line.time(1'000'000) == 600 * kMs + 7'020'800 + 50 * kMs);
  CHECK(slow_start_s(1e6, 12.5e6, 0.1, 14'480) == doctest::Approx(0.6 - 912'240 / 12.5e6));
}

TEST_CASE("slow start alone on a path adds what its closed form says") {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    CAPTURE(seed);
    RandomStream random({.seed = seed, .purpose = Purpose::test});
    const double rate = 1e5 * std::pow(1e4, random.uniform());
    const auto round_trip = static_cast<SimTime>(2 * (1 + random.below(100 * kMs)));
    const double window = 1'000 + 20'000 * random.uniform();
    const auto bytes = 1 + random.below(5'000'000);
    const double flow = static_cast<double>(bytes) / rate;
    const double expected =
        to_seconds(round_trip) / 2 + flow +
        slow_start_s(static_cast<double>(bytes), rate, to_seconds(round_trip), window);
    Line line(rate, round_trip, window);
    CHECK(to_seconds(line.time(bytes)) == doctest::Approx(expected).epsilon(1e-7));
  }
}

TEST_CASE("a window that has grown serves the next message, until it was idle for long") {
  // 1 MB/s, 100 ms: windows of 10, 20, 40, 80 kB are too small.
  Line line(1e6, 100 * kMs, 10'000);
  CHECK(line.time(25'000) == (100 + 15 + 50) * kMs);
  // 50 ms after it left: 5 kB of the second window, then up to 35 kB in the third round trip.
  CHECK(line.time(25'000) == (35 + 20 + 50) * kMs);
  CHECK(line.time(500'000) > 500 * kMs);
  CHECK(line.time(500'000) == 550 * kMs);
  CHECK(line.time(500'000) == 550 * kMs);
  // Idle for less than the time-out of 300 ms, of which 50 ms have passed.
  line.wait(240 * kMs);
  CHECK(line.time(500'000) == 550 * kMs);
  // Long idle: it begins with 10 kB again.
  line.wait(10'000 * kMs);
  CHECK(line.time(25'000) == (100 + 15 + 50) * kMs);
}

TEST_CASE("an aborted connection begins anew") {
  Line line(1e6, 100 * kMs, 10'000);
  const SimTime cold = line.time(400'000);
  CHECK(line.time(400'000) < cold);
  line.network().abort(0);
  CHECK(line.time(400'000) == cold);
}

TEST_CASE("while a window pauses, others have the link") {
  // Both at 0.5 MB/s until the window of 10 kB is used up at 20 ms; the near one then sends 80 kB
  // alone until 100 ms, and shares again for its last 10 kB. The far one's last 5 kB leave by 125.
  const Platform platform = shared_link(1e6, 100 * kMs);
  EventQueue queue;
  Network network(platform, {.initial_window_bytes = 10'000}, 1, queue);
  const ConnectionId far = network.connect(platform, 0, 1);
  const ConnectionId near = network.connect(platform, 2, 1);
  network.send(far, 25'000);
  network.send(near, 100'000);
  CHECK(network.step()->connection == near);
  CHECK(queue.now() == 120 * kMs);
  CHECK(network.step()->connection == far);
  CHECK(queue.now() == 175 * kMs);
}

TEST_CASE("windows double, decay by half for each time-out of silence, and open by rate") {
  CongestionWindow window(1'000);
  const SimTime trip = 100 * kMs;
  const auto send = [&](double bytes, SimTime now) {
    window.offer(bytes);
    window.sent(bytes, now);
  };
  window.resume(0, trip);
  CHECK(window.allowance() == 1'000);
  send(1'000, kMs);
  CHECK(window.allowance() == 0);
  CHECK(window.round_end() == trip);
  window.next_round(trip, trip, 1e9, 900);
  CHECK(window.allowance() == 2'000);
  // Less than half used, also with what was not yet acknowledged: it does not grow.
  window.resume(2 * trip, trip);
  send(900, 2 * trip);
  window.next_round(3 * trip, trip, 1e9, 2'000);
  CHECK(window.window() == 2'000);
  send(2'000, 3 * trip);
  // 4,000 bytes are two windows ahead of 20 kB/s × 100 ms.
  window.next_round(4 * trip, trip, 2e4, 4'000);
  CHECK(window.open());
  CHECK(window.allowance() > 1e300);
  // Though it limits nothing it grows, up to twice what is under way at once: 4,000 bytes.
  send(1'000'000, 5 * trip);
  window.resume(5 * trip + 300 * kMs, trip);
  CHECK(window.open());
  CHECK(window.window() == 8'000);
  window.resume(5 * trip + 301 * kMs, trip);
  CHECK(window.allowance() == 4'000);
  send(10, 10 * trip);
  window.resume(10 * trip + 10'000 * kMs, trip);
  CHECK(window.allowance() == 1'000);
}

TEST_CASE("what waits behind a slow link counts as under way, and the window grows with it") {
  // 10 kB offered at once leave at 1 kB a round trip; each acknowledged kB widens the window by as
  // much, up to twice the 10 kB.
  CongestionWindow window(10'000, false);
  const SimTime trip = 10 * kMs;
  for (int message = 0; message < 3; ++message) {
    const SimTime start = message * 20 * trip;
    window.resume(start, trip);
    window.offer(10'000);
    for (int k = 1; k <= 10; ++k) {
      window.sent(1'000, start + k * trip);
      if (k < 10) {
        window.next_round(start + k * trip, trip, std::numeric_limits<double>::infinity(),
                          10'000 - 1'000 * k);
      }
    }
  }
  window.resume(100 * trip, trip);
  CHECK(window.window() == 20'000);
}

TEST_CASE("the time-out of a young connection is three round trips, and shrinks") {
  const SimTime trip = 400 * kMs;
  const auto decayed = [&](int rounds, SimTime silence) {
    CongestionWindow window(1'000);
    SimTime now = 0;
    window.resume(now, trip);
    for (int k = 0; k < rounds; ++k) {
      window.offer(window.window());
      window.sent(window.window(), now);
      now += trip;
      window.next_round(now, trip, 1e12, 1'000);
    }
    window.sent(1, now);
    const double before = window.window();
    window.resume(now + silence, trip);
    return window.window() < before;
  };
  CHECK(!decayed(1, 1'040 * kMs));  // 400 + 200 + 600 × 3/4
  CHECK(decayed(1, 1'060 * kMs));
  CHECK(decayed(12, 640 * kMs));  // towards 400 + 200
  CHECK(!decayed(12, 590 * kMs));
}

TEST_CASE("a window that does not decay is as it was, however long the silence") {
  CongestionWindow window(1'000, false);
  window.resume(0, kMs);
  window.offer(1'000);
  window.sent(1'000, 0);
  window.next_round(kMs, kMs, 1e9, 0);
  window.resume(60'000 * kMs, kMs);
  CHECK(window.allowance() == 2'000);
}

TEST_CASE("with slow start, too, bytes are conserved and no link is above its capacity") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    CAPTURE(seed);
    RandomStream random({.seed = seed, .purpose = Purpose::test});
    const auto hosts = 3 + random.below(6);
    Platform platform(static_cast<int>(hosts));
    platform.set_default_route({});
    for (Rank h = 0; h < static_cast<Rank>(hosts); ++h) {
      const LinkId out =
          platform.set_egress(h, {.bytes_per_s = 1e5 + 1e6 * random.uniform(),
                                  .latency = static_cast<SimTime>(random.below(20 * kMs))});
      platform.set_ingress(h, {.bytes_per_s = 1e5 + 1e6 * random.uniform()});
      platform.add_change({.at = static_cast<SimTime>(random.below(1'000 * kMs)),
                           .link = out,
                           .bytes_per_s = 1e5 + 1e6 * random.uniform(),
                           .latency = static_cast<SimTime>(random.below(50 * kMs))});
    }
    EventQueue queue;
    Network network(platform, NetworkModel::linux_tcp(), 1, queue);
    double sent = 0;
    for (int i = 0; i < 60; ++i) {
      const auto from = random.below(hosts);
      const auto to = (from + 1 + random.below(hosts - 1)) % hosts;
      const auto bytes = 1 + random.below(200'000);
      network.send(network.connect(platform, static_cast<Rank>(from), static_cast<Rank>(to)),
                   bytes);
      sent += static_cast<double>(bytes);
    }
    double received = 0;
    while (const auto arrival = network.step()) {
      received += static_cast<double>(arrival->bytes);
      network.settle();
      REQUIRE(network.shares().unfairness() < 1e-8);
    }
    CHECK(received == sent);
    for (LinkId link = 0; link < 2 * hosts; ++link) {
      CHECK(network.carried()[link] <= network.offered(link) * (1 + 1e-9));
    }
  }
}

}  // namespace sotto::test::congestion_window_test
