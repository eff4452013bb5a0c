// Push-sum among sites: what it computes, and that nothing is lost or counted twice.
#include <cmath>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/optim/algorithms/push_sum.h>

#include "optim/cluster.h"
#include "sites/core/chaos.h"
#include "sites/core/site_network.h"

namespace sotto::test::push_sum_test {

namespace {

constexpr std::size_t kSites = 6;
constexpr std::size_t kDimension = 24;

/// A ring one way, and some arcs across; every site gives equal shares.
bool arc(std::size_t from, std::size_t to) {
  return to == (from + 1) % kSites || (from % 2 == 0 && to == (from + 3) % kSites) ||
         (from == 5 && to == 2);
}

/// A ring both ways: masses stay 1, so that the rule of mass has nothing to do.
bool ring(std::size_t from, std::size_t to) {
  return to == (from + 1) % kSites || from == (to + 1) % kSites;
}

using Arcs = bool (*)(std::size_t from, std::size_t to);

std::shared_ptr<const Topology> directed_graph(Arcs arcs) {
  std::vector<std::vector<WeightedEdge>> rounds(1);
  std::vector<double> self;
  for (std::size_t from = 0; from < kSites; ++from) {
    std::size_t degree = 0;
    for (std::size_t to = 0; to < kSites; ++to) {
      degree += arcs(from, to) ? 1U : 0U;
    }
    const double share = 1.0 / static_cast<double>(1 + degree);
    for (std::size_t to = 0; to < kSites; ++to) {
      if (arcs(from, to)) {
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
  if (seed % 7 == 3) {
    options.outer_step = {.rule = "sgd", .learning_rate = 0.7, .momentum = 0.5, .nesterov = true};
  }
  const std::size_t sites = options.sites;
  if (seed % 3 == 0) {  // one-sided: a ring, and an arc back
    options.edge = [sites](std::size_t from, std::size_t to) {
      return to == (from + 1) % sites || (from == 2 && to == 0);
    };
  }
  return options;
}

}  // namespace

namespace {

/// What sites come to along these arcs, and what PushSum does.
void check_in_step(Arcs arcs, const sites::MassRule& mass, std::size_t dimension = kDimension,
                   Round rounds = 50) {
  const Quadratic task(kSites, dimension, 3);
  for (const std::string spec : {"none", "quant:8", "topk:0.1", "sign"}) {
    CAPTURE(spec);
    ClusterOptions reference{.algorithm = "pushsum",
                             .compressor = spec,
                             .nodes = kSites,
                             .dimension = dimension,
                             .step = {.learning_rate = 0.05, .momentum = 0.5},
                             .seed = 6};
    Cluster cluster(reference, directed_graph(arcs));
    REQUIRE(cluster.driver.run(rounds, task).ok());

    SiteNetwork network(
        {.sites = kSites,
         .dimension = dimension,
         .edge = arcs,
         .compressor = spec,
         .step = reference.step,
         .mass = mass,
         .seed = 3,
         .era = 2,
         .gradient = [&](std::size_t site, Round round, std::span<const float> x,
                         std::span<float> g) { task(static_cast<Rank>(site), round, x, g); }});
    // The cluster's initial model is of its own seed.
    Cluster fresh(reference, directed_graph(arcs));
    for (std::size_t i = 0; i < kSites; ++i) {
      network.node(i).x = fresh.x[i];
    }
    network.connect_all();
    network.deliver_all();
    network.run_in_step(rounds);
    for (std::size_t i = 0; i < kSites; ++i) {
      CHECK(network.state(i).round == rounds);
      CHECK(network.state(i).mass ==
            doctest::Approx(cluster.node<PushSum>(i).mass()).epsilon(1e-12));
      CHECK(relative_distance(network.node(i).x, cluster.x[i]) < 1e-6);
      CHECK(network.state(i).raised + network.state(i).lowered == 0);
    }
  }
}

}  // namespace

TEST_CASE("core: in step and without faults, push-sum is the PushSum of papers") {
  check_in_step(arc, kMassStays);
  check_in_step(ring, {});
}

TEST_CASE("core: push-sum of a model that is gone over in several pieces is that of papers, too") {
  check_in_step(arc, kMassStays, 9'001, 8);
  check_in_step(ring, {}, 9'001, 8);
}

TEST_CASE("core: whatever dies and returns, no mass is lost or counted twice") {
  for (std::uint64_t seed = 1; seed <= 1500; ++seed) {
    CAPTURE(seed);
    Chaos chaos(options_of(seed), seed);
    chaos.run(250, Faults::crashes);
    chaos.check_recovery();
  }
}

TEST_CASE("core: sites put back to older states are noticed, and the audit still holds") {
  for (std::uint64_t seed = 1; seed <= 1500; ++seed) {
    CAPTURE(seed);
    Chaos chaos(options_of(seed), seed);
    chaos.run(250, Faults::all);
    chaos.check_recovery();
  }
}

TEST_CASE("core: without steps the sum of all models stays, whatever is compressed and dies") {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    CAPTURE(seed);
    SiteNetworkOptions options = options_of(seed);
    options.slack = 0;
    options.mass = kMassStays;
    options.outer_step.reset();    // which moves models
    options.pull.fresh = 1 << 20;  // a damped pull does not keep the sum
    Chaos chaos(options, seed);
    SiteNetwork& network = chaos.network;
    std::vector<double> expected(options.dimension);
    for (std::size_t i = 0; i < network.size(); ++i) {
      for (std::size_t k = 0; k < expected.size(); ++k) {
        expected[k] += static_cast<double>(network.node(i).x[k]);
      }
    }
    network.connect_all();
    network.deliver_all();
    network.run_in_step(1);  // all begin with their own models
    chaos.run(200, Faults::crashes);
    chaos.check_recovery();
    chaos.settle();
    std::vector<double> found(options.dimension);
    for (std::size_t i = 0; i < network.size(); ++i) {
      const double mass = network.state(i).mass;
      for (std::size_t k = 0; k < found.size(); ++k) {
        found[k] += mass * static_cast<double>(network.site(i).parameters()[k]);
      }
      for (const PeerState& peer : network.peers(i)) {
        CHECK(peer.pending == 0);  // so that z ω is all that there is
      }
    }
    for (std::size_t k = 0; k < found.size(); ++k) {
      CHECK(std::fabs(found[k] - expected[k]) < 2e-5);
    }
  }
}

TEST_CASE("core: push-sum finds the optimum although sites come and go") {
  for (const std::string spec : {"none", "quant:8"}) {
    CAPTURE(spec);
    constexpr std::size_t kCount = 5;
    const Quadratic task(kCount, 8, 11);
    SiteNetworkOptions options;
    options.sites = kCount;
    options.compressor = spec;
    options.step = {.learning_rate = 0.2, .schedule = parse_schedule("step:200:0.5", 1600)};
    options.gradient = [&](std::size_t site, Round round, std::span<const float> x,
                           std::span<float> g) { task(static_cast<Rank>(site), round, x, g); };
    options.edge = [](std::size_t from, std::size_t to) {
      return to == (from + 1) % kCount || to == (from + 3) % kCount;
    };
    Chaos chaos(options, 7);
    const auto mean = [&] {
      std::vector<double> sum(8);
      for (std::size_t i = 0; i < kCount; ++i) {
        for (std::size_t k = 0; k < sum.size(); ++k) {
          sum[k] += static_cast<double>(chaos.network.node(i).x[k]) / kCount;
        }
      }
      return sum;
    };
    const double before = task.excess(mean());
    chaos.run(3000, Faults::all);
    chaos.check_recovery();
    const double meanwhile = task.excess(mean());
    CAPTURE(before);
    CAPTURE(meanwhile);
    CHECK(meanwhile < 0.2 * before);
    chaos.settle();
    while (chaos.network.state(0).round < 1600) {
      chaos.network.run_in_step(100);
    }
    CHECK(task.excess(mean()) < 1e-4 * before);
  }
}

}  // namespace sotto::test::push_sum_test
