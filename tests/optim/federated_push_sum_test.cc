// Push-sum among sites: what it computes, and that nothing is lost or counted twice.
#include <cmath>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/optim/algorithms/push_sum.h>

#include "optim/chaos.h"
#include "optim/cluster.h"
#include "optim/site_network.h"

using namespace sotto;
using namespace sotto::test;

namespace {

constexpr std::size_t kSites = 6;
constexpr std::size_t kDimension = 24;

/// A ring one way, and some arcs across; every site gives equal shares.
bool arc(std::size_t from, std::size_t to) {
  return to == (from + 1) % kSites || (from % 2 == 0 && to == (from + 3) % kSites) ||
         (from == 5 && to == 2);
}

std::shared_ptr<const Topology> directed_graph() {
  std::vector<std::vector<WeightedEdge>> rounds(1);
  std::vector<double> self;
  for (std::size_t from = 0; from < kSites; ++from) {
    std::size_t degree = 0;
    for (std::size_t to = 0; to < kSites; ++to) {
      degree += arc(from, to) ? 1U : 0U;
    }
    const double share = 1.0 / static_cast<double>(1 + degree);
    for (std::size_t to = 0; to < kSites; ++to) {
      if (arc(from, to)) {
        rounds[0].push_back({static_cast<Rank>(from), static_cast<Rank>(to), share});
      }
    }
    self.push_back(share);
  }
  return std::make_shared<const Topology>("arcs", static_cast<int>(kSites), std::move(rounds),
                                          std::vector<std::vector<double>>{self});
}

const std::vector<std::string>& compressors() {
  static const std::vector<std::string> specs = {"none", "quant:8", "topk:0.2", "sign"};
  return specs;
}

SiteNetworkOptions options_of(std::uint64_t seed) {
  SiteNetworkOptions options;
  options.sites = 2 + seed % 4;
  options.compressor = compressors()[seed / 4 % 4];
  options.window = 1 + seed % 3;
  options.slack = seed % 2;
  options.communication_interval = 1 + seed % 2;
  options.seed = seed;
  options.same_start = false;
  const std::size_t sites = options.sites;
  if (seed % 3 == 0) {  // one-sided: a ring, and an arc back
    options.edge = [sites](std::size_t from, std::size_t to) {
      return to == (from + 1) % sites || (from == 2 && to == 0);
    };
  }
  return options;
}

}  // namespace

TEST_CASE("federated: in step and without faults, push-sum is the PushSum of papers") {
  const Quadratic task(kSites, kDimension, 3);
  for (const std::string spec : {"none", "quant:8", "topk:0.1", "sign"}) {
    CAPTURE(spec);
    ClusterOptions reference{.algorithm = "pushsum",
                             .compressor = spec,
                             .nodes = kSites,
                             .dimension = kDimension,
                             .step = {.learning_rate = 0.05, .momentum = 0.5},
                             .seed = 6};
    Cluster cluster(reference, directed_graph());
    REQUIRE(cluster.driver.run(50, task).ok());

    SiteNetwork network(
        {.sites = kSites,
         .dimension = kDimension,
         .edge = arc,
         .compressor = spec,
         .step = reference.step,
         .seed = 3,
         .era = 2,
         .gradient = [&](std::size_t site, Round round, std::span<const float> x,
                         std::span<float> g) { task(static_cast<Rank>(site), round, x, g); }});
    // The cluster's initial model is of its own seed.
    Cluster fresh(reference, directed_graph());
    for (std::size_t i = 0; i < kSites; ++i) {
      network.node(i).x = fresh.x[i];
    }
    network.connect_all();
    network.deliver_all();
    network.run_in_step(50);
    for (std::size_t i = 0; i < kSites; ++i) {
      CHECK(network.state(i).round == 50);
      CHECK(network.state(i).mass ==
            doctest::Approx(cluster.node<PushSum>(i).mass()).epsilon(1e-12));
      CHECK(relative_distance(network.node(i).x, cluster.x[i]) < 1e-6);
    }
  }
}

TEST_CASE("federated: whatever dies and returns, no mass is lost or counted twice") {
  for (std::uint64_t seed = 1; seed <= 1500; ++seed) {
    CAPTURE(seed);
    Chaos chaos(options_of(seed), seed);
    chaos.run(250, Faults::crashes);
    chaos.check_recovery();
  }
}

TEST_CASE("federated: sites put back to older states are noticed, and the audit still holds") {
  for (std::uint64_t seed = 1; seed <= 1500; ++seed) {
    CAPTURE(seed);
    Chaos chaos(options_of(seed), seed);
    chaos.run(250, Faults::all);
    chaos.check_recovery();
  }
}
