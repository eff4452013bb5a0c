// Gossip among sites: what it computes, that followers hold the same copies, and that a rule
// withstands a site that lies.
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/base/error.h>

#include "optim/cluster.h"
#include "sites/core/chaos.h"
#include "sites/core/site_network.h"

namespace sotto::test::gossip_test {

namespace {

constexpr std::size_t kDimension = 24;

/// A ring with a chord from 0: degrees differ.
std::function<bool(std::size_t, std::size_t)> ring_with_chord(std::size_t sites) {
  return [sites](std::size_t from, std::size_t to) {
    const auto next = [sites](std::size_t a, std::size_t b) { return b == (a + 1) % sites; };
    const std::size_t far = sites / 2;
    return next(from, to) || next(to, from) || (from == 0 && to == far) || (from == far && to == 0);
  };
}

/// A graph that is equal in all rounds, but given as one of two, so that CHOCO-SGD sums in the
/// order in which sites do.
std::shared_ptr<const Topology> graph_of(std::size_t sites) {
  const auto edge = ring_with_chord(sites);
  std::vector<WeightedEdge> edges;
  std::vector<double> self(sites, 1);
  const auto degree = [&](std::size_t i) {
    std::size_t count = 0;
    for (std::size_t j = 0; j < sites; ++j) {
      count += i != j && edge(i, j) ? 1U : 0U;
    }
    return count;
  };
  for (std::size_t i = 0; i < sites; ++i) {
    for (std::size_t j = 0; j < sites; ++j) {
      if (i != j && edge(i, j)) {
        const double weight = 1.0 / static_cast<double>(1 + std::max(degree(i), degree(j)));
        edges.push_back({static_cast<Rank>(i), static_cast<Rank>(j), weight});
        self[i] -= weight;
      }
    }
  }
  return std::make_shared<const Topology>("ring with a chord", static_cast<int>(sites),
                                          std::vector<std::vector<WeightedEdge>>(2, edges),
                                          std::vector<std::vector<double>>(2, self));
}

SiteNetworkOptions options_of(std::uint64_t seed) {
  static const std::vector<std::string> specs = {"none", "quant:8", "topk:0.2", "sign"};
  SiteNetworkOptions options;
  options.sites = 2 + seed % 4;
  options.compressor = specs[seed / 4 % 4];
  options.exchange = sites::MixingKind::gossip;
  options.step = {.learning_rate = 0.1};
  options.slack = seed % 2;
  options.window = options.slack + 2 + seed % 3 / 2;
  options.seed = seed;
  if (seed % 7 == 3) {
    options.outer_step = {.rule = "sgd", .learning_rate = 0.7, .momentum = 0.9, .nesterov = true};
  }
  options.gradient = [](std::size_t site, Round round, std::span<const float> x,
                        std::span<float> g) {
    for (std::size_t k = 0; k < g.size(); ++k) {
      g[k] = x[k] - static_cast<float>((site + round + k) % 5);
    }
  };
  return options;
}

/// What sites come to in step, and what CHOCO-SGD does, with this outer rule after the mixing.
void check_in_step(const std::optional<StepRuleOptions>& outer, std::size_t dimension = kDimension,
                   Round rounds = 50) {
  constexpr std::size_t kSites = 6;
  const Quadratic task(kSites, dimension, 3);
  for (const std::string spec : {"none", "quant:8", "topk:0.1", "sign"}) {
    CAPTURE(spec);
    ClusterOptions reference{.algorithm = "choco",
                             .compressor = spec,
                             .nodes = kSites,
                             .dimension = dimension,
                             .step = {.learning_rate = 0.05, .momentum = 0.5},
                             .outer_step = outer,
                             .outer_after_mixing = outer.has_value(),
                             .seed = 6,
                             .initial_scale = 0};
    Cluster cluster(reference, graph_of(kSites));
    REQUIRE(cluster.driver.run(rounds, task).ok());

    SiteNetwork network(
        {.sites = kSites,
         .dimension = dimension,
         .edge = ring_with_chord(kSites),
         .compressor = spec,
         .exchange = sites::MixingKind::gossip,
         .step = reference.step,
         .outer_step = outer,
         .seed = 3,
         .era = 2,
         .gradient = [&](std::size_t site, Round round, std::span<const float> x,
                         std::span<float> g) { task(static_cast<Rank>(site), round, x, g); }});
    for (std::size_t i = 0; i < kSites; ++i) {
      std::ranges::fill(network.node(i).x, 0.0F);
    }
    network.connect_all();
    network.deliver_all();
    network.run_in_step(rounds);
    for (std::size_t i = 0; i < kSites; ++i) {
      CHECK(network.state(i).round == rounds);
      CHECK(relative_distance(network.node(i).x, cluster.x[i]) < 1e-6);
    }
  }
}

}  // namespace

TEST_CASE("core: in step and without faults, gossip is CHOCO-SGD") { check_in_step({}); }

TEST_CASE("core: gossip of a model that is gone over in several pieces is CHOCO-SGD, too") {
  check_in_step({}, 9'001, 8);
}

TEST_CASE("core: in step and without faults, gossip with an outer rule is that of fixed nodes") {
  check_in_step(
      StepRuleOptions{.rule = "sgd", .learning_rate = 0.7, .momentum = 0.5, .nesterov = true});
}

TEST_CASE("core: followers of a public copy hold the same bits, whatever dies and returns") {
  for (const Faults faults : {Faults::crashes, Faults::all}) {
    for (std::uint64_t seed = 1; seed <= 500; ++seed) {
      CAPTURE(seed);
      Chaos chaos(options_of(seed), seed);
      chaos.run(200, faults);
      chaos.check_recovery();
      chaos.settle();
      const std::size_t sites = chaos.network.size();
      CHECK(chaos.check_copies() == sites * (sites - 1));
    }
  }
}

namespace {

/// The excess of the honest sites' mean model, after 600 rounds of five sites of which one
/// lies.
double excess_beside_a_liar(const std::string& rule, bool lies) {
  constexpr std::size_t kSites = 5;
  constexpr std::size_t kLiar = 2;
  const Quadratic task(kSites, kDimension, 5);
  SiteNetworkOptions options;
  options.sites = kSites;
  options.dimension = kDimension;
  options.exchange = sites::MixingKind::gossip;
  options.rule = rule;
  options.step = {.learning_rate = 0.05};
  options.gradient = [&](std::size_t site, Round round, std::span<const float> x,
                         std::span<float> g) {
    // All honest sites have the same data, so that they lose nothing without the liar's.
    task(0, round, x, g);
    if (lies && site == kLiar) {
      for (float& value : g) {
        value = -4 * value - 3;
      }
    }
  };
  SiteNetwork network(options);
  network.connect_all();
  network.deliver_all();
  for (int k = 0; k < 600; ++k) {
    network.run_in_step(1);
    if (lies) {  // it says what it likes, and does not itself listen
      for (float& value : network.node(kLiar).x) {
        value = 50;
      }
    }
  }
  double worst = 0;
  for (std::size_t i = 0; i < kSites; ++i) {
    double squares = 0;
    std::vector<float> gradient(kDimension);
    task(0, 0, network.node(i).x, gradient);
    for (const float value : gradient) {
      squares += static_cast<double>(value) * static_cast<double>(value);
    }
    worst = i == kLiar ? worst : std::fmax(worst, squares);
  }
  return worst;
}

}  // namespace

TEST_CASE("core: a rule withstands a site that lies, where the average does not") {
  CHECK(excess_beside_a_liar("", false) < 1e-3);
  CHECK(excess_beside_a_liar("", true) > 1);
  CHECK(excess_beside_a_liar("clipped:auto", false) < 1e-3);
  CHECK(excess_beside_a_liar("clipped:auto", true) < 1e-3);
  CHECK(excess_beside_a_liar("median", true) < 1e-3);
}

}  // namespace sotto::test::gossip_test
