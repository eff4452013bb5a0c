// Acknowledgements wait in the queue of what goes the way back. Where they are counted as a part of
// a rate, they take that of the way back, and do not share it as data do.
#include <sotto/sim/network/tcp/acknowledgements.h>

#include <algorithm>
#include <cmath>

#include <doctest/doctest.h>

#include <sotto/base/philox.h>
#include <sotto/sim/network/network.h>

namespace sotto::test::acknowledgements_test {

namespace {

constexpr double kPart = 0.02;

/// Two hosts; what host 0 sends and receives.
struct Pair {
  Pair(double up, double down)
      : platform(two(up, down)),
        network(platform, {.acknowledgements = kPart}, 1, queue),
        there(network.connect(platform, 0, 1)),
        back(network.connect(platform, 1, 0)) {}

  static Platform two(double up, double down) {
    Platform made(2);
    made.set_default_route({});
    made.set_egress(0, {.bytes_per_s = up});
    made.set_ingress(0, {.bytes_per_s = down});
    return made;
  }
  double rate(ConnectionId connection) {
    network.settle();
    return network.shares().rate(connection);
  }

  Platform platform;
  EventQueue queue;
  Network network;
  ConnectionId there;
  ConnectionId back;
};

doctest::Approx about(double value) { return doctest::Approx(value).epsilon(2e-3); }

}  // namespace

TEST_CASE("a slow way out that is full does not hold up what comes in, but for what it takes") {
  for (const double down : {4e6, 8e6, 40e6, 100e6}) {
    CAPTURE(down);
    const double up = 4e6;
    Pair pair(up, down);
    pair.network.send(pair.there, 1'000'000'000);
    pair.network.send(pair.back, 1'000'000'000);
    // there = up − p back, back = down − p there
    const double there = (up - kPart * down) / (1 - kPart * kPart);
    CHECK(pair.rate(pair.there) == about(there));
    CHECK(pair.rate(pair.back) == about(down - kPart * there));
  }
}

TEST_CASE("a flow that is alone has the whole link, before another and after it") {
  Pair pair(4e6, 40e6);
  pair.network.send(pair.there, 8'000'000);
  CHECK(pair.rate(pair.there) == about(4e6));
  pair.network.send(pair.back, 4'000'000);
  CHECK(pair.rate(pair.there) == about(3.2e6));
  REQUIRE(pair.network.step().value().connection == pair.back);
  CHECK(pair.rate(pair.there) == about(4e6));
  REQUIRE(pair.network.step().value().connection == pair.there);
}

TEST_CASE("a message that is given up frees its way back") {
  Pair pair(4e6, 4e6);
  pair.network.send(pair.there, 1'000'000'000);
  pair.network.send(pair.back, 1'000'000'000);
  CHECK(pair.rate(pair.there) < 3.95e6);
  pair.network.abort(pair.back);
  CHECK(pair.rate(pair.there) == about(4e6));
}

TEST_CASE("a link that changes, however little, is as wide as it is said to be") {
  for (const double acknowledgements : {0.0, kPart}) {
    CAPTURE(acknowledgements);
    EventQueue queue;
    Platform platform = Pair::two(1e6, 1e6);
    const LinkId up = platform.route(0, 1).links.front();
    platform.add_change({.at = 1, .link = up, .bytes_per_s = 1.0005e6, .latency = 0});
    Network network(platform, {.acknowledgements = acknowledgements}, 1, queue);
    const ConnectionId there = network.connect(platform, 0, 1);
    network.send(there, 1'000'000'000);
    network.settle();
    while (network.step()) {
      network.settle();
    }
    CHECK(network.shares().capacity(up) == doctest::Approx(1.0005e6).epsilon(1e-9));
  }
}

TEST_CASE("a flow is no faster than its way back can acknowledge") {
  Pair pair(1e5, 1e9);
  pair.network.send(pair.back, 1'000'000'000);
  CHECK(pair.rate(pair.back) == about(1e5 / kPart));
  // Beside data, acknowledgements take half of the link at most.
  pair.network.send(pair.there, 1'000'000);
  CHECK(pair.rate(pair.there) == about(0.5e5));
}

TEST_CASE("an acknowledgement leaves once the bytes that were queued before it have") {
  constexpr SimTime kTrip = 50'000'000;
  Acknowledgements acknowledgements;
  CHECK(acknowledgements.returning());  // nothing is under way
  acknowledgements.start_round(true);
  CHECK_FALSE(acknowledgements.returning());
  // 3 kB have left and 6 kB wait: it is the byte behind 9 kB, which take 6 ms more at 1 MB/s.
  const ReverseStream joined = {
      .sent = 3'000, .queued = 6'000, .bytes_per_s = 1e6, .flowing = true};
  CHECK(acknowledgements.advance(joined, kTrip) == 6'000'000);
  CHECK_FALSE(acknowledgements.returning());
  // What queues behind it does not hold it up; a rate that changes does.
  CHECK(acknowledgements.advance(
            {.sent = 5'000, .queued = 20'000, .bytes_per_s = 5e5, .flowing = true}, kTrip) ==
        8'000'000);
  CHECK(acknowledgements.advance(
            {.sent = 9'000, .queued = 16'000, .bytes_per_s = 5e5, .flowing = true}, kTrip) == 0);
  CHECK(acknowledgements.returning());
  // The next round trip's joins anew.
  acknowledgements.start_round(true);
  CHECK(acknowledgements.advance(
            {.sent = 9'000, .queued = 1'000, .bytes_per_s = 1e6, .flowing = true}, kTrip) ==
        1'000'000);
}

TEST_CASE("nothing holds an acknowledgement up where nothing leaves before it") {
  Acknowledgements acknowledgements;
  acknowledgements.start_round(false);
  CHECK(acknowledgements.returning());
  acknowledgements.start_round(true);
  CHECK(acknowledgements.advance({.sent = 7'000}, 0) == 0);
  CHECK(acknowledgements.returning());
}

TEST_CASE("behind a link that is cut an acknowledgement looks again after a round trip") {
  const ReverseStream cut = {.sent = 100, .queued = 1'000, .bytes_per_s = 0, .flowing = true};
  const auto pause_after = [&](SimTime round_trip) {
    Acknowledgements acknowledgements;
    acknowledgements.start_round(true);
    const SimTime pause = acknowledgements.advance(cut, round_trip);
    CHECK_FALSE(acknowledgements.returning());
    return pause;
  };
  CHECK(pause_after(7'000'000) == 7'000'000);
  CHECK(pause_after(10) == 1'000'000);
}

TEST_CASE("whenever one looks, the acknowledgement leaves no sooner and hardly later") {
  constexpr std::uint64_t kSeed = 20261127;
  CAPTURE(kSeed);
  RandomStream random({.seed = kSeed, .purpose = Purpose::test});
  for (int i = 0; i < 1'000; ++i) {
    const double rate = 1e3 + 1e8 * random.uniform();
    const double queued = 1 + 1e6 * random.uniform();
    Acknowledgements acknowledgements;
    acknowledgements.start_round(true);
    ReverseStream stream = {.queued = queued, .bytes_per_s = rate, .flowing = true};
    SimTime now = 0;
    while (true) {
      const SimTime wait = acknowledgements.advance(stream, 0);
      if (acknowledgements.returning()) {
        break;
      }
      // Somebody else's news makes the sender look before the time is over.
      now += std::max<SimTime>(
          1, static_cast<SimTime>(std::ceil(static_cast<double>(wait) * random.uniform())));
      stream.sent = std::min(queued, rate * to_seconds(now));
      stream.queued = queued - stream.sent;
    }
    const double leaves_s = queued / rate;
    CHECK(to_seconds(now) >= leaves_s - 0.5 / rate - 1e-9);
    CHECK(to_seconds(now) <= leaves_s + 2e-9);
  }
}

}  // namespace sotto::test::acknowledgements_test
