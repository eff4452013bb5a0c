// The mean by secure sums among sites: what it computes, and that it goes on whatever dies.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/base/error.h>

#include "optim/cluster.h"
#include "sites/core/chaos.h"
#include "sites/core/site_network.h"

using namespace sotto;
using namespace sotto::test;

namespace {

constexpr std::size_t kDimension = 24;

SiteNetworkOptions secure_mean_of(std::size_t sites, std::size_t colluders, std::uint64_t seed) {
  SiteNetworkOptions options;
  options.sites = sites;
  options.exchange = sites::MixingKind::secure_mean;
  options.sum = {.colluders = colluders};
  options.step = {.learning_rate = 0.1};
  options.window = 3;
  options.seed = seed;
  options.gradient = [](std::size_t site, Round round, std::span<const float> x,
                        std::span<float> g) {
    for (std::size_t k = 0; k < g.size(); ++k) {
      g[k] = x[k] - static_cast<float>((site + round + k) % 5);
    }
  };
  return options;
}

}  // namespace

TEST_CASE("core: in step and without faults, secure sums make D-PSGD on the complete graph") {
  for (const std::size_t count : {std::size_t{3}, std::size_t{6}}) {
    const Quadratic task(count, kDimension, 3);
    ClusterOptions reference{.algorithm = "dpsgd",
                             .topology = "complete",
                             .nodes = count,
                             .dimension = kDimension,
                             .step = {.learning_rate = 0.05, .momentum = 0.5},
                             .seed = 6,
                             .initial_scale = 0};
    Cluster cluster(reference);
    REQUIRE(cluster.driver.run(50, task).ok());
    SiteNetworkOptions options = secure_mean_of(count, count > 3 ? 1 : 0, 3);
    options.dimension = kDimension;
    options.step = reference.step;
    options.gradient = [&](std::size_t site, Round round, std::span<const float> x,
                           std::span<float> g) { task(static_cast<Rank>(site), round, x, g); };
    SiteNetwork network(options);
    for (std::size_t i = 0; i < count; ++i) {
      std::ranges::fill(network.node(i).x, 0.0F);
    }
    network.connect_all();
    network.deliver_all();
    network.run_in_step(50);
    std::vector<float> mean(kDimension);
    for (std::size_t i = 0; i < count; ++i) {
      CHECK(network.state(i).round == 50);
      CHECK(network.state(i).sums.made == 50);
      CHECK(network.state(i).sums.lost == 0);
      CHECK(network.state(i).sums.sites == count);
      CHECK(relative_distance(network.node(i).x, network.node(0).x) < 1e-6);
      for (std::size_t k = 0; k < kDimension; ++k) {
        mean[k] += cluster.x[i][k] / static_cast<float>(count);
      }
    }
    CHECK(relative_distance(network.node(0).x, mean) < 1e-4);
  }
}

TEST_CASE("core: secure sums always add up and go on, whatever dies and returns") {
  std::uint64_t made = 0;
  std::uint64_t lost = 0;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    CAPTURE(seed);
    const std::size_t count = 3 + seed % 5;
    Chaos chaos(secure_mean_of(count, seed % (count - 2), seed), seed);
    chaos.run(300, seed % 2 == 0 ? Faults::crashes : Faults::all);
    chaos.check_recovery();
    const auto check_sums = [&] {
      for (std::size_t i = 0; i < count; ++i) {
        const sites::SumCounts sums = chaos.network.state(i).sums;
        CHECK(sums.unequal == 0);
        made += sums.made;
        lost += sums.lost;
      }
    };
    check_sums();
    // After the faults each round has its sum again, of all.
    for (int turn = 0; turn < 60; ++turn) {
      for (std::size_t i = 0; i < count; ++i) {
        chaos.network.advance(i, true, true);
      }
      chaos.network.connect_all();
      chaos.network.deliver_all();
    }
    check_sums();
    for (std::size_t i = 0; i < count; ++i) {
      CHECK(chaos.network.state(i).sums.lost_in_a_row == 0);
      CHECK(chaos.network.state(i).sums.sites == count);
    }
  }
  CHECK(made > 0);
  CHECK(lost > 0);
}

TEST_CASE("core: one site of five that is gone costs the others no sum") {
  SiteNetwork network(secure_mean_of(5, 1, 4));
  network.connect_all();
  network.deliver_all();
  network.run_in_step(3);
  network.kill(2);
  network.run_in_step(10);
  for (const std::size_t i : {0U, 1U, 3U, 4U}) {
    CHECK(network.state(i).sums.made == 13);
    CHECK(network.state(i).sums.lost == 0);
    CHECK(network.state(i).sums.sites == 4);
  }
  // It comes back ten rounds late, and goes on where the others are.
  network.start(2);
  network.connect_all();
  network.deliver_all();
  for (int turn = 0; turn < 30; ++turn) {
    for (std::size_t i = 0; i < 5; ++i) {
      network.advance(i, true, true);
    }
    network.deliver_all();
  }
  for (std::size_t i = 0; i < 5; ++i) {
    CHECK(network.state(i).round == network.state(0).round);
    CHECK(network.state(i).sums.sites == 5);
    CHECK(network.state(i).sums.lost_in_a_row == 0);
  }
}

TEST_CASE("core: a late site is given a mean, and not a site's model") {
  SiteNetwork network(secure_mean_of(4, 0, 5));
  network.connect_all();
  network.deliver_all();
  network.run_in_step(4);
  network.kill(3);
  network.node(3).durable.clear();  // it has lost its state
  network.start(3);
  const std::vector<float> mean(network.node(0).x);
  network.train(0);  // site 0 has its own model now
  network.write(0);
  network.pump(0);
  CHECK(relative_distance(network.node(0).x, mean) > 1e-3);
  network.connect(0, 3);
  network.pump(0);
  network.deliver_all();
  CHECK(network.site(3).try_begin(true));
  CHECK(relative_distance(network.node(3).x, mean) < 1e-6);
}

TEST_CASE("core: secure sums refuse what they cannot hide, by name") {
  const auto refused = [](const std::function<void(SiteNetworkOptions&)>& change) {
    SiteNetworkOptions options = secure_mean_of(4, 1, 1);
    change(options);
    CHECK_THROWS_AS(SiteNetwork{options}, Error);
  };
  refused([](SiteNetworkOptions& o) { o.sites = 2; });
  refused([](SiteNetworkOptions& o) { o.sum.colluders = 2; });
  refused([](SiteNetworkOptions& o) { o.sum.range = 0; });
  refused([](SiteNetworkOptions& o) { o.sum.range = std::nan(""); });
  refused([](SiteNetworkOptions& o) { o.slack = 1; });
  refused([](SiteNetworkOptions& o) { o.window = 2; });
  refused([](SiteNetworkOptions& o) { o.compressor = "quant:8"; });
  refused([](SiteNetworkOptions& o) { o.rule = "median"; });
  refused([](SiteNetworkOptions& o) { o.observer = [](std::size_t i) { return i == 1; }; });
  refused([](SiteNetworkOptions& o) {
    o.edge = [](std::size_t from, std::size_t to) { return from < to || to == 0; };
  });
}
