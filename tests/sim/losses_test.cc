#include <sotto/sim/network/losses.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/base/philox.h>
#include <sotto/sim/network/network.h>

using namespace sotto;

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
  const ConnectionId connection = network.connect(0, 1);
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

TEST_CASE("packets are lost with their chance, wherever messages end") {
  for (const double chance : {0.001, 0.02, 0.3}) {
    CAPTURE(chance);
    PacketLosses losses(chance, {.seed = 1, .purpose = Purpose::test});
    RandomStream random({.seed = 2, .purpose = Purpose::test});
    double packets = 0;
    double lost = 0;
    while (packets < 1e5) {
      const double bytes = static_cast<double>(random.below(20'000));
      losses.begin(bytes, 1'000);
      packets += std::max(1.0, std::ceil(bytes / 1'000));
      for (double last = bytes + 1; losses.behind() >= 0; losses.next()) {
        CHECK(losses.behind() < last);  // one by one, to the message's end
        last = losses.behind();
        ++lost;
      }
    }
    const double spread = std::sqrt(chance * (1 - chance) / packets);
    CHECK(std::abs(lost / packets - chance) < 4 * spread);
  }
}

TEST_CASE("a repair lasts as long as its kind of news takes, and what follows waits for it") {
  constexpr double kSegment = 1'000;
  constexpr SimTime kTrip = 100 * kMs;
  const double rate = 1e6;  // a packet takes 1 ms
  // When the receiver has everything, in ms, with a seed whose first message loses the packet with
  // so many bytes behind it, and not once more.
  const auto whole_at = [&](std::uint64_t bytes, double rest, bool another_waits) {
    for (std::uint64_t seed = 1; seed < 10'000; ++seed) {
      const RandomKey key = {.seed = seed, .purpose = Purpose::test};
      LossRepair repair(0.3, key, kSegment);
      CongestionWindow window(1e6, true, kSegment);
      window.resume(0, kTrip);
      window.sent(static_cast<double>(bytes), 0);
      repair.begin(bytes);
      CHECK(repair.whole_at() == -1);
      const double until = repair.until_loss(static_cast<double>(bytes));
      PacketLosses draws(0.3, key);
      draws.begin(static_cast<double>(bytes), kSegment);
      draws.next();
      if (until != static_cast<double>(bytes) - rest || draws.again()) {
        continue;
      }
      CHECK(repair
                .lose({.hears_after = kTrip, .bytes_per_s = rate, .another_waits = another_waits},
                      window)
                .bytes_again == 0);
      // What is sent afterwards reports a loss that only the time-out would tell of.
      const SimTime before = repair.whole_at();
      const bool silent = rest == 0 && !another_waits;
      CHECK(repair.may_begin(before, kTrip) == (silent ? before : before + kTrip));
      CHECK(repair.report(0, kTrip) == (silent ? before - 125 * kMs : 0));
      CHECK(repair.report(0, kTrip) == 0);  // once
      const SimTime whole = repair.whole_at();
      CHECK(repair.may_begin(whole - 1, kTrip) == whole - 1);
      CHECK(repair.may_begin(whole + 1, kTrip) == whole + kTrip);
      CHECK(repair.may_begin(whole + 2 * kTrip, kTrip) == whole + 2 * kTrip);
      repair.abort();
      CHECK(repair.whole_at() == -1);
      CHECK(repair.may_begin(whole + 1, kTrip) == whole + 1);
      return before / kMs;
    }
    FAIL("no seed loses that packet");
    return SimTime{-1};
  };
  CHECK(whole_at(5'000, 3'000, false) == 101);  // a round trip, and the packet once more
  CHECK(whole_at(5'000, 2'000, false) == 126);  // a quarter later
  CHECK(whole_at(5'000, 0, false) == 301);      // the time-out
  CHECK(whole_at(5'000, 0, true) == 101);       // another message follows at once
}

TEST_CASE("a message that goes on past the window carries the lost packet once more") {
  constexpr double kSegment = 1'000;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    CAPTURE(seed);
    LossRepair repair(0.01, {.seed = seed, .purpose = Purpose::test}, kSegment);
    CongestionWindow window(10'000, true, kSegment);
    window.resume(0, 100 * kMs);
    repair.begin(1'000'000);
    double remaining = 1e6;
    double sent = 0;
    for (double until = repair.until_loss(remaining); until >= 0;
         until = repair.until_loss(remaining)) {
      sent += until;
      remaining -= until;
      const bool beyond = remaining > window.window();
      const double again =
          repair.lose({.hears_after = 100 * kMs, .bytes_per_s = 1e6}, window).bytes_again;
      CHECK(again == (beyond ? kSegment : 0));
      remaining += again;
    }
    CHECK(repair.until_loss(remaining) == -1);
    CHECK(sent + remaining >= 1e6);
  }
}

TEST_CASE("a lone packet that is lost waits for the time-out, and twice as long when lost again") {
  // A packet takes 1 ms; a round trip 100 ms and the 2 × 1.448 ms of two full packets.
  const auto took =
      times({.loss = 0.1}, {.bytes = 1'000, .messages = 5'000, .pause = 5'000 * kMs}, 1);
  const double out = 0.051;
  const double timeout = 0.1 + 0.002896 + 0.2;
  const double again = 0.001448;  // to send it
  std::vector<int> count(3);
  for (const SimTime span : took) {
    const double late = to_seconds(span) - out;
    const int k = late < 1e-6 ? 0 : late < 1.5 * timeout ? 1 : 2;
    ++count[static_cast<std::size_t>(k)];
    if (k == 1) {
      CHECK(late == doctest::Approx(timeout + again).epsilon(1e-6));
    } else if (k == 2 && late < 3 * timeout) {
      CHECK(late == doctest::Approx(2 * timeout + again).epsilon(1e-6));
    }
  }
  CHECK(std::abs(count[0] / 5e3 - 0.9) < 4 * std::sqrt(0.09 / 5e3));
  CHECK(std::abs(count[1] / 5e3 - 0.09) < 4 * std::sqrt(0.09 / 5e3));
}

TEST_CASE("a packet that is lost again and again waits for time-outs that double") {
  constexpr double kChance = 0.5;
  constexpr double kSegment = 1'000;
  constexpr SimTime kTrip = 100 * kMs;
  std::vector<int> count(4);
  for (std::uint64_t seed = 1; seed <= 2'000; ++seed) {
    CAPTURE(seed);
    const RandomKey key = {.seed = seed, .purpose = Purpose::test};
    PacketLosses draws(kChance, key);
    draws.begin(50'000, kSegment);
    if (draws.behind() < 3'000) {
      continue;  // too near the end: another rule
    }
    const double rest = draws.behind();
    draws.next();
    SimTime late = 0;
    std::size_t again = 0;
    for (SimTime timeout = 300 * kMs; again < 15 && draws.again(); ++again, timeout *= 2) {
      late += timeout;
    }
    LossRepair repair(kChance, key, kSegment);
    CongestionWindow window(1e6, true, kSegment);
    window.resume(0, kTrip);
    window.sent(50'000 - rest, 0);
    repair.begin(50'000);
    const LossCost cost = repair.lose({.hears_after = kTrip, .bytes_per_s = 1e9}, window);
    CHECK(cost.times_out_at == (again == 0 ? -1 : kTrip + late));
    CHECK(std::abs(to_seconds(repair.whole_at() - kTrip - late)) < 1e-5);
    ++count[std::min<std::size_t>(again, 3)];
  }
  CHECK(*std::ranges::min_element(count) > 50);
}

TEST_CASE("what is sent meanwhile tells of a loss before the time-out does") {
  const Platform platform = platform_of({.loss = 0.2});
  int told = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    CAPTURE(seed);
    EventQueue queue;
    Network network(platform, NetworkModel::linux_tcp(), seed, queue);
    const ConnectionId connection = network.connect(0, 1);
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
    // Lost, and told of a quarter of a round trip after the second packet's acknowledgement.
    const double told_at = 0.020 + 1.25 * (0.1 + 0.002896) + 0.05;
    told += std::abs(to_seconds(first) - told_at) < 1e-6 ? 1 : 0;
  }
  CHECK(told > 10);
}

TEST_CASE("a notice that goes the same way tells of a lost last packet, and of nothing else") {
  // Gloo says on the same stream that a receive is posted.
  const Platform platform = platform_of({.loss = 0.3});
  int lost = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    CAPTURE(seed);
    const auto time = [&](bool notice) {
      EventQueue queue;
      Network network(platform, NetworkModel::linux_tcp(), seed, queue);
      const ConnectionId connection = network.connect(0, 1);
      const ConnectionId back = network.connect(1, 0);
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
      return queue.now();
    };
    const SimTime silent = time(false);
    const SimTime told = time(true);
    if (silent > 300 * kMs) {
      ++lost;
      CHECK(told < silent);
    } else {
      CHECK(told == silent);
    }
  }
  CHECK(lost > 5);
}

TEST_CASE("losses never make a message faster, repeat by seed and differ between seeds") {
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
    const auto lossy = times(path, stream, seed);
    CHECK(times(path, stream, seed) == lossy);
    Path clean = path;
    clean.loss = 0;
    CHECK(mean_s(lossy) >= mean_s(times(clean, stream, seed)) * (1 - 1e-9));
  }
  const Stream long_stream = {.bytes = 1'000'000};
  CHECK(times({}, long_stream, 1) != times({}, long_stream, 2));
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
  const Platform platform = platform_of({.loss = 0.5});
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    EventQueue queue;
    Network network(platform, NetworkModel::linux_tcp(), seed, queue);
    const ConnectionId connection = network.connect(0, 1);
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
      network.send(network.connect(static_cast<Rank>(from), static_cast<Rank>(to)), bytes);
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
