#include <sotto/sim/network/tcp/packet_losses.h>

#include <cmath>

#include <doctest/doctest.h>

namespace sotto::test::packet_losses_test {

namespace {

struct Counted {
  double packets = 0;
  double lost = 0;
  double bursts = 0;
};

Counted count(PacketLosses losses, int packets) {
  Counted counted = {.packets = static_cast<double>(packets)};
  bool before = false;
  for (int i = 0; i < packets; ++i) {
    const bool lost = losses.lose();
    counted.lost += lost ? 1 : 0;
    counted.bursts += lost && !before ? 1 : 0;
    before = lost;
  }
  return counted;
}

}  // namespace

TEST_CASE("packets are lost with their chance and in bursts of their mean length") {
  RandomStream random({.seed = 11, .purpose = Purpose::test});
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    CAPTURE(seed);
    const double share = 0.3 * random.uniform() + 0.001;
    const double least = 1 / (1 - share);
    const double burst = seed % 4 == 0 ? 0 : least * (1 + 9 * random.uniform());
    CAPTURE(share);
    CAPTURE(burst);
    const Counted found =
        count(PacketLosses({{share, burst}}, {.seed = seed, .purpose = Purpose::test}), 400'000);
    const double mean = burst > 0 ? burst : least;
    // The variance of a chain's share is that of apart ones times (1 + r) / (1 − r), where r is
    // what a packet's fate says of the next one's.
    const double r = 1 - 1 / mean - share / (mean * (1 - share));
    const double spread =
        std::sqrt(share * (1 - share) / found.packets * (1 + r) / std::max(1 - r, 1e-3));
    CHECK(std::abs(found.lost / found.packets - share) < 4.5 * spread + 1e-6);
    CHECK(found.lost / found.bursts ==
          doctest::Approx(mean).epsilon(4.5 / std::sqrt(found.bursts)));
  }
}

TEST_CASE("links in a row lose as their chances say together, and a link without loss nothing") {
  const RandomKey key = {.seed = 3, .purpose = Purpose::test};
  const Counted both = count(PacketLosses({{0.1, 0}, {0.2, 0}}, key), 200'000);
  CHECK(both.lost / both.packets == doctest::Approx(0.28).epsilon(0.02));
  CHECK(count(PacketLosses({}, key), 1'000).lost == 0);
  CHECK(count(PacketLosses({{0, 0}}, key), 1'000).lost == 0);
}

}  // namespace sotto::test::packet_losses_test
