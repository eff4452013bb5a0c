// Acknowledgements take a part of the way back; they do not share it as data do.
#include <doctest/doctest.h>

#include <sotto/sim/network/network.h>

using namespace sotto;

namespace {

constexpr double kPart = 0.02;

/// Two hosts; what host 0 sends and receives.
struct Pair {
  Pair(double up, double down)
      : platform(two(up, down)),
        network(platform, {.acknowledgements = kPart}, 1, queue),
        there(network.connect(0, 1)),
        back(network.connect(1, 0)) {}

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
    const ConnectionId there = network.connect(0, 1);
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
