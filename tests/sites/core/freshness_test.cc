// Neighbours that fall behind: how much their old models pull, and what that costs the others.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>

#include <doctest/doctest.h>

#include <sotto/sites/core/conduct/freshness.h>

#include "sites/core/site_network.h"
#include "support/seed.h"

namespace sotto::test::freshness_test {

using sites::Freshness;

namespace {

constexpr std::size_t kOnSlope = 5;
constexpr std::size_t kBehind = 4;

/// All sites go the same way, by the learning rate a round: what they come to is their progress.
SiteNetworkOptions slope(const std::string& compressor) {
  SiteNetworkOptions options;
  options.sites = kOnSlope;
  options.compressor = compressor;
  options.exchange = sites::MixingKind::gossip;
  options.step = {.learning_rate = 0.01};
  options.gradient = [](std::size_t, Round, std::span<const float>, std::span<float> g) {
    std::ranges::fill(g, -1.0F);
  };
  return options;
}

/// The mean over the others of how far the model's first element came, in steps a round, where one
/// site makes a round in each `period` of theirs; 0: it is not there.
double progress(const SiteNetworkOptions& options, int period, int rounds) {
  SiteNetwork network(options);
  for (std::size_t i = 0; i < kOnSlope; ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (period > 0 || (i != kBehind && j != kBehind)) {
        network.connect(i, j);
      }
    }
  }
  network.deliver_all();
  const float before = network.site(0).parameters()[0];
  for (int round = 1; round <= rounds; ++round) {
    const auto takes_part = [&](std::size_t i) {
      return i != kBehind || (period > 0 && round % period == 0);
    };
    for (std::size_t i = 0; i < kOnSlope; ++i) {
      if (takes_part(i)) {
        network.advance(i, false, true);
      }
    }
    network.deliver_all();
    for (std::size_t i = 0; i < kOnSlope; ++i) {
      if (takes_part(i)) {
        network.collect(i);
      }
    }
    network.deliver_all();
  }
  double sum = 0;
  for (std::size_t i = 0; i + 1 < kOnSlope; ++i) {
    sum += static_cast<double>(network.site(i).parameters()[0] - before);
  }
  return sum / (kOnSlope - 1) / options.step.learning_rate / rounds;
}

}  // namespace

TEST_CASE("the part of a pull that parcels make falls as their maker does, and not to 0") {
  Freshness freshness;
  const auto copy = [&](Round own, Round theirs) {
    return freshness.part({.own = own, .theirs = theirs}, 4);
  };
  const auto parcel = [&](Round own, Round theirs) {
    return freshness.part({.own = own, .theirs = theirs}, 1);
  };
  CHECK(copy(1000, 1) == 1);  // the first says nothing
  CHECK(parcel(1000, 1) == 1);
  freshness.note({.own = 1000, .theirs = 1});
  CHECK(copy(1001, 2) == 1);
  CHECK(parcel(1001, 2) == 1);
  CHECK(copy(1004, 2) == 1);
  CHECK(parcel(1004, 2) == 0.25);
  CHECK(copy(1008, 2) == 0.5);
  CHECK(copy(1016, 3) == 0.5);
  CHECK(parcel(1016, 3) == 0.125);
  CHECK(copy(1016, 17) == 1);  // rare, and no round behind
  CHECK(parcel(1016, 17) == 1);
  CHECK(copy(1 << 30, 2) == 1.0 / 16);
  CHECK(parcel(1 << 30, 2) == 1.0 / 64);
  CHECK(copy(1000, 2) == 1);
  CHECK(copy(1010, Round{1} << 63) == 1);
}

TEST_CASE("core: in gossip who falls behind takes little of the others' progress") {
  const std::uint64_t seed = drawn_seed();
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  for (const std::string compressor : {"none", "quant:8", "quant:4", "sign"}) {
    const int period = std::uniform_int_distribution(12, 60)(random);
    CAPTURE(compressor);
    CAPTURE(period);
    const SiteNetworkOptions options = slope(compressor);
    const int rounds = 20 * period;
    CHECK(progress(options, period, rounds) > 0.8 * progress(options, 0, rounds));
  }
}

TEST_CASE("core: in push-sum who falls behind takes little of the others' progress") {
  const std::uint64_t seed = drawn_seed();
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  for (const std::string compressor : {"none", "quant:8", "quant:4"}) {
    const int period = std::uniform_int_distribution(3, 40)(random);
    CAPTURE(compressor);
    CAPTURE(period);
    SiteNetworkOptions options = slope(compressor);
    options.exchange = sites::MixingKind::push_sum;
    const int rounds = 20 * period;
    CHECK(progress(options, period, rounds) > 0.85 * progress(options, 0, rounds));
  }
}

TEST_CASE("core: a public copy pulls once for each parcel") {
  // The neighbour makes no more rounds: what it said last pulls in one round, and in no later one.
  SiteNetwork network(slope("none"));
  network.connect_all();
  network.deliver_all();
  network.run_in_step(5);
  for (int round = 0; round < 50; ++round) {
    for (std::size_t i = 0; i < kOnSlope; ++i) {
      if (i != kBehind) {
        network.advance(i, false, true);
      }
    }
    network.deliver_all();
    for (std::size_t i = 0; i < kOnSlope; ++i) {
      if (i != kBehind) {
        network.collect(i);
      }
    }
    network.deliver_all();
    CHECK(network.peers(0)[network.place(0, kBehind)].moved == 0);
    CHECK(network.peers(0)[network.place(0, kBehind)].up);
  }
}

}  // namespace sotto::test::freshness_test
