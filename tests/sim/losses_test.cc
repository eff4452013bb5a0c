#include <sotto/sim/network/tcp/mean_rate.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/base/philox.h>
#include <sotto/sim/network/network.h>

namespace sotto::test::losses_test {

namespace {

constexpr SimTime kMs = 1'000'000;

struct Path {
  double bytes_per_s = 1e6;
  SimTime latency = 50 * kMs;
  double loss = 0.01;
};

/// One path there and the same back.
Platform platform_of(const Path& path) {
  Platform platform(2);
  const LinkSpec spec = {
      .bytes_per_s = path.bytes_per_s, .latency = path.latency, .loss = path.loss};
  platform.set_route(0, 1, {platform.add_link(spec)});
  platform.set_route(1, 0, {platform.add_link(spec)});
  return platform;
}

struct Stream {
  std::uint64_t bytes = 10'000;
  int messages = 1;
  SimTime pause = 0;  ///< from one's arrival until the next leaves
};

/// How long each message of a stream took.
std::vector<SimTime> times(const Path& path, const Stream& stream, std::uint64_t seed,
                           const NetworkModel& model = NetworkModel::linux_tcp()) {
  const Platform platform = platform_of(path);
  EventQueue queue;
  Network network(platform, model, seed, queue);
  const ConnectionId connection = network.connect(platform, 0, 1);
  std::vector<SimTime> took;
  for (int i = 0; i < stream.messages; ++i) {
    queue.push({.time = queue.now() + stream.pause, .kind = Network::kKinds});
    while (!queue.empty()) {
      network.settle();
      if (const Event event = queue.pop(); event.kind != Network::kKinds) {
        network.handle(event);
      }
    }
    const SimTime sent = queue.now();
    network.send(connection, stream.bytes);
    const auto arrival = network.step();
    REQUIRE(arrival);
    CHECK(arrival->bytes == stream.bytes);
    took.push_back(queue.now() - sent);
  }
  return took;
}

double mean_s(const std::vector<SimTime>& spans) {
  double sum = 0;
  for (const SimTime span : spans) {
    sum += to_seconds(span);
  }
  return sum / static_cast<double>(spans.size());
}

}  // namespace

TEST_CASE("without slow start, loss bounds the rate as Padhye et al. give it") {
  // By hand: 0.1 × √(0.02 / 3) = 8.165 ms, and 0.3 × 3 √(0.03 / 8) × 0.01 × 1.0032 = 0.5529 ms.
  CHECK(mean_rate(0.01, 0.1, 1448) == doctest::Approx(1448 / 0.0087179).epsilon(1e-4));
  CHECK(to_seconds(times({.bytes_per_s = 1e9}, {.bytes = 1'000'000}, 1, {})[0]) ==
        doctest::Approx(0.05 + 1e6 / mean_rate(0.01, 0.1, 1448)));
  // Time-outs hardly matter where little is lost: Mathis et al. 1997.
  CHECK(mean_rate(1e-6, 0.1, 1448) ==
        doctest::Approx(1448 / 0.1 * std::sqrt(1.5 / 1e-6)).epsilon(1e-3));
}

TEST_CASE(
    "a lone packet that is lost waits for its time-out, which doubles when it is lost again") {
  // The time-out is a round trip of 101 ms, of late 40 ms more for a delayed acknowledgement, and
  // 200 ms; the probe that a tail gets leaves in its place, and the first time-out after it.
  const auto took =
      times({.loss = 0.1}, {.bytes = 1'000, .messages = 5'000, .pause = 5'000 * kMs}, 1);
  std::vector<int> count(3);
  for (const SimTime span : took) {
    const double late = to_seconds(span) - 0.051;
    const int k = late < 1e-6 ? 0 : late < 0.5 ? 1 : 2;
    ++count[static_cast<std::size_t>(k)];
    CHECK((k != 1 || (late > 0.301 && late < 0.36)));
    CHECK((k != 2 || (late > 0.602 && late < 0.72) || late > 1.2));
  }
  CHECK(std::abs(count[0] / 5e3 - 0.9) < 4 * std::sqrt(0.09 / 5e3));
  CHECK(std::abs(count[1] / 5e3 - 0.09) < 4 * std::sqrt(0.09 / 5e3));
  CHECK(count[2] > 0);
}

TEST_CASE("what is sent meanwhile tells of a loss before the time-out does") {
  const Platform platform = platform_of({.loss = 0.2});
  int told = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    CAPTURE(seed);
    EventQueue queue;
    Network network(platform, NetworkModel::linux_tcp(), seed, queue);
    const ConnectionId connection = network.connect(platform, 0, 1);
    network.send(connection, 1'000);
    queue.push({.time = 20 * kMs, .kind = Network::kKinds});
    while (true) {
      network.settle();
      if (const Event event = queue.pop(); event.kind == Network::kKinds) {
        break;
      } else {
        CHECK_FALSE(network.handle(event));
      }
    }
    network.send(connection, 1'000);
    REQUIRE(network.step());
    const SimTime first = queue.now();
    REQUIRE(network.step());
    CHECK(network.under_way(connection) == 0);
    CHECK(queue.now() >= 71 * kMs);
    // The second packet is heard of 101 ms after it left; a packet that left a quarter of a round
    // trip before such a packet counts as lost: 125 ms after it left, and arrives 51 ms later.
    told += std::abs(to_seconds(first) - 0.177) < 0.001 ? 1 : 0;
  }
  CHECK(told > 10);
}

TEST_CASE("a notice that goes the same way tells of a lost last packet") {
  // Gloo says on the same stream that a receive is posted.
  const Platform platform = platform_of({.loss = 0.3});
  const auto mean = [&](bool notice) {
    double sum = 0;
    for (std::uint64_t seed = 1; seed <= 400; ++seed) {
      EventQueue queue;
      Network network(platform, NetworkModel::linux_tcp(), seed, queue);
      const ConnectionId connection = network.connect(platform, 0, 1);
      const ConnectionId back = network.connect(platform, 1, 0);
      network.send(connection, 1'000);
      queue.push({.time = 10 * kMs, .kind = Network::kKinds});
      std::optional<Arrival> arrival;
      while (!arrival) {
        network.settle();
        const Event event = queue.pop();
        if (event.kind != Network::kKinds) {
          arrival = network.handle(event);
        } else if (notice) {
          network.notify_back(back);
        }
      }
      CHECK(network.under_way(connection) == 0);
      sum += to_seconds(queue.now());
    }
    return sum / 400;
  };
  CHECK(mean(true) < 0.98 * mean(false));
}

TEST_CASE("losses make messages slower, repeat by seed and differ between seeds") {
  RandomStream random({.seed = 7, .purpose = Purpose::test});
  for (int i = 0; i < 100; ++i) {
    CAPTURE(i);
    const Path path = {.bytes_per_s = 1e5 * std::pow(1e3, random.uniform()),
                       .latency = static_cast<SimTime>(1 + random.below(200 * kMs)),
                       .loss = std::pow(10, -3 + 2 * random.uniform())};
    const Stream stream = {.bytes = 1 + random.below(300'000),
                           .messages = 5,
                           .pause = static_cast<SimTime>(random.below(100 * kMs))};
    const auto seed = random.next_u64();
    for (const Congestion congestion : {Congestion::reno, Congestion::cubic, Congestion::bbr}) {
      CAPTURE(congestion_name(congestion));
      NetworkModel model = NetworkModel::linux_tcp();
      model.congestion = congestion;
      const auto lossy = times(path, stream, seed, model);
      CHECK(times(path, stream, seed, model) == lossy);
      Path clean = path;
      clean.loss = 1e-9;
      CHECK(mean_s(lossy) >= mean_s(times(clean, stream, seed, model)) * 0.9);
    }
  }
  const Stream long_stream = {.bytes = 1'000'000};
  CHECK(times({}, long_stream, 1) != times({}, long_stream, 2));
}

TEST_CASE("where next to nothing is lost packets take as long as the fluid") {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    CAPTURE(seed);
    RandomStream random({.seed = seed, .purpose = Purpose::test});
    const Path path = {.bytes_per_s = 1e5 * std::pow(1e3, random.uniform()),
                       .latency = static_cast<SimTime>(1 + random.below(200 * kMs)),
                       .loss = 1e-9};
    Path fluid = path;
    fluid.loss = 0;
    const Stream stream = {.bytes = 1 + random.below(3'000'000)};
    const double packets = to_seconds(times(path, stream, seed)[0]);
    const double expected = to_seconds(times(fluid, stream, seed)[0]);
    // Slow start counts whole packets: its last window may be a round trip more or less.
    CHECK(std::abs(packets - expected) <= 0.02 * expected + 2.1 * to_seconds(path.latency) + 0.001);
  }
}

TEST_CASE("a long stream keeps the rate that Padhye et al. give it") {
  for (const double loss : {0.002, 0.01, 0.03}) {
    CAPTURE(loss);
    const Path path = {.bytes_per_s = 1e9, .latency = 50 * kMs, .loss = loss};
    const double rate = 2e7 / mean_s(times(path, {.bytes = 20'000'000, .messages = 3}, 1));
    CHECK(rate == doctest::Approx(mean_rate(loss, 0.1, 1448)).epsilon(0.2));
  }
}

TEST_CASE("a loss costs a short message round trips, and a long one that hardly loses nothing") {
  // Windows stay above rate × round trip = 20 kB when one of 1,000 packets halves them.
  const Path slow = {.bytes_per_s = 1e5, .latency = 100 * kMs, .loss = 0.001};
  CHECK(mean_s(times(slow, {.bytes = 5'000'000, .messages = 4}, 3)) ==
        doctest::Approx(0.1 + 50).epsilon(0.03));
  // Seven packets: all arrive in one go, or a loss costs a round trip or two, or a time-out.
  const auto took = times({.loss = 0.001}, {.messages = 3'000, .pause = 20 * kMs}, 1);
  const auto prompt =
      std::count_if(took.begin(), took.end(), [](SimTime span) { return span < 61 * kMs; });
  CHECK(prompt > 2'850);
  CHECK(prompt < 3'000);
}

TEST_CASE("an abort forgets what was lost") {
  const Platform platform = platform_of({.loss = 0.3});
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    EventQueue queue;
    Network network(platform, NetworkModel::linux_tcp(), seed, queue);
    const ConnectionId connection = network.connect(platform, 0, 1);
    network.send(connection, 50'000);
    network.settle();
    for (int i = 0; i < 5 && !queue.empty(); ++i) {
      network.handle(queue.pop());
      network.settle();
    }
    network.abort(connection);
    CHECK(network.under_way(connection) == 0);
    CHECK_FALSE(network.step());
    network.send(connection, 10'000);
    REQUIRE(network.step());
    CHECK_FALSE(network.step());
  }
}

TEST_CASE("losses leave shares fair and no link above its capacity") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    CAPTURE(seed);
    RandomStream random({.seed = seed, .purpose = Purpose::test});
    Platform platform(4);
    platform.set_default_route({});
    for (Rank host = 0; host < 4; ++host) {
      platform.set_egress(host, {.bytes_per_s = 1e5 + 1e6 * random.uniform(),
                                 .latency = static_cast<SimTime>(random.below(20 * kMs)),
                                 .loss = 0.05 * random.uniform()});
      platform.set_ingress(host, {.bytes_per_s = 1e5 + 1e6 * random.uniform()});
    }
    EventQueue queue;
    Network network(platform, NetworkModel::linux_tcp(), seed, queue);
    double sent = 0;
    for (int i = 0; i < 40; ++i) {
      const auto from = random.below(4);
      const auto to = (from + 1 + random.below(3)) % 4;
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
    for (LinkId link = 0; link < 8; ++link) {
      CHECK(network.carried()[link] <= network.offered(link) * (1 + 1e-9));
    }
  }
}

}  // namespace sotto::test::losses_test
