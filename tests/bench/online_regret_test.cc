// The online learners of bench/online_regret: what they see, what hindsight would have done, and
// the order that online push-sum claims (He et al. 2019, arXiv:1910.04956).
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/base/error.h>
#include <sotto/base/philox.h>
#include <sotto/topology/properties.h>
#include <sotto/topology/registry.h>
#include <sotto/trainers/data/loaders.h>

#include "bench/learning/online/report.h"
#include "bench/learning/online/study.h"
#include "support/skip.h"

namespace sotto::test::online_regret_test {

using namespace sotto::bench;

namespace {

/// Labels drawn from a logistic model of 6 normal features.
std::shared_ptr<const Dataset> logistic_data(std::size_t train, std::size_t test) {
  constexpr std::size_t kFeatures = 6;
  RandomStream random({.seed = 5, .purpose = Purpose::test});
  const auto draw = [&](std::size_t count) {
    std::vector<float> values;
    std::vector<std::int32_t> labels;
    for (std::size_t i = 0; i < count; ++i) {
      double score = 0.5;
      for (std::size_t k = 0; k < kFeatures; ++k) {
        const double value = random.normal();
        score += (k % 2 == 0 ? 2.0 : -1.0) * value;
        values.push_back(static_cast<float>(value));
      }
      labels.push_back(random.uniform() < 1 / (1 + std::exp(-score)) ? 1 : 0);
    }
    return std::make_unique<DenseExamples>(kFeatures, std::move(values), std::move(labels));
  };
  auto first = draw(train);
  return pooled(std::make_shared<const Dataset>("logistic", 2, std::move(first), draw(test)));
}

/// A circle of trust with chords that run one way, and every fourth edge returned.
std::shared_ptr<const Topology> circle(int nodes, bool returned) {
  std::vector<WeightedEdge> edges;
  std::vector<double> self(static_cast<std::size_t>(nodes), 1);
  const auto add = [&](Rank from, Rank to, double weight) {
    edges.push_back({from, to, weight});
    self[static_cast<std::size_t>(from)] -= weight;
  };
  for (Rank node = 0; node < nodes; ++node) {
    const Rank next = (node + 1) % nodes;
    const bool mutual = node % 4 == 0;
    if (returned) {
      if (mutual) {
        add(node, next, 0.5);
        add(next, node, 0.5);
      }
      continue;
    }
    const bool answers = node % 4 == 1;
    const double share = answers ? 0.25 : 1.0 / 3;
    add(node, next, share);
    add(node, (node + 5) % nodes, share);
    if (answers) {
      add(node, (node + nodes - 1) % nodes, share);
    }
  }
  return std::make_shared<const Topology>("circle", nodes,
                                          std::vector<std::vector<WeightedEdge>>{edges},
                                          std::vector<std::vector<double>>{self});
}

double mass_of(const Topology& graph) {
  const auto data = logistic_data(2000, 10);
  const Stream stream(data, {.nodes = graph.nodes()});
  const Learner learner{
      .name = "", .algorithm = "pushsum", .graph = std::make_shared<const Topology>(graph)};
  return play(learner, stream, 0.1, 1).mass;
}

std::string data_folder() {
  const char* folder = std::getenv("SOTTO_DATA");
  return folder == nullptr ? std::string{} : folder;
}

/// Checks that the first kClaimed learners are in order in every seed, each at its best rate.
void check_order(const Case& result) {
  CAPTURE(result.data);
  CAPTURE(result.stream.adversarial);
  for (std::size_t k = 0; k + 1 < kClaimed; ++k) {
    CAPTURE(result.standings[k].name);
    CAPTURE(result.standings[k + 1].name);
    CHECK(seeds_in_order(result, k, k + 1) == result.hindsight.size());
  }
}

}  // namespace

TEST_CASE("every example is seen at most once, by one node, and adversarial ones by label") {
  const auto data = logistic_data(900, 100);
  CHECK(data->train().size() == 1000);
  for (const double adversarial : {0.0, 0.5, 1.0}) {
    CAPTURE(adversarial);
    const Stream stream(data, {.nodes = 16, .batch = 2, .adversarial = adversarial, .seed = 3});
    CHECK(stream.rounds() >= 30);
    CHECK(stream.rounds() <= 31);
    std::set<std::uint32_t> seen;
    double purity = 0;
    for (Rank rank = 0; rank < 16; ++rank) {
      const auto examples = stream.examples(rank);
      CHECK(examples.size() >= 2 * stream.rounds());
      double ones = 0;
      for (const std::uint32_t example : examples) {
        CHECK(seen.insert(example).second);
        ones += data->train().labels()[example];
      }
      const double share = ones / static_cast<double>(examples.size());
      purity += std::max(share, 1 - share) / 16;
    }
    CHECK(seen.size() == 1000);
    CAPTURE(purity);
    CHECK((adversarial < 1 ? purity < 0.85 : purity > 0.95));
    CHECK((adversarial > 0 || purity < 0.7));
  }
}

TEST_CASE("the best fixed model is the entropy of the labels where features say nothing") {
  std::vector<std::int32_t> labels(400, 0);
  std::fill(labels.begin(), labels.begin() + 100, 1);
  const auto data = pooled(std::make_shared<const Dataset>(
      "mute", 2, std::make_unique<DenseExamples>(1, std::vector<float>(400, 0), labels),
      std::make_unique<DenseExamples>(1, std::vector<float>(400, 0), labels)));
  const double entropy = -0.25 * std::log(0.25) - 0.75 * std::log(0.75);
  const Stream stream(data, {.nodes = 8});
  CHECK(stream.best_fixed_loss() == doctest::Approx(entropy).epsilon(1e-8));
}

TEST_CASE("hindsight finds what plain gradient descent comes to") {
  const auto data = logistic_data(1990, 10);
  const Stream stream(data, {.nodes = 1, .batch = 2000});
  REQUIRE(stream.rounds() == 1);
  const double best = stream.best_fixed_loss();
  auto task = stream.task(0);
  std::vector<float> x(task->dimension());
  std::vector<float> g(x.size());
  double loss = 0;
  for (int step = 0; step < 1000; ++step) {
    loss = task->loss_and_gradient(0, x, g);
    for (std::size_t k = 0; k < x.size(); ++k) {
      x[k] -= g[k];
    }
  }
  CHECK(loss == doctest::Approx(best).epsilon(1e-6));
}

TEST_CASE("one node that sees all examples is all-reduce on all nodes") {
  const auto data = logistic_data(600, 10);
  const Stream stream(data, {.nodes = 8, .batch = 2});
  const Play one = play({.name = "", .algorithm = "allreduce", .graph = nullptr}, stream, 0.3, 1);
  const Play all =
      play({.name = "", .algorithm = "allreduce", .graph = make_topology("complete", 8)}, stream,
           0.3, 1);
  CHECK(one.loss == doctest::Approx(all.loss).epsilon(1e-5));
  CHECK(one.bytes == 0);
  CHECK(all.bytes > 0);
}

TEST_CASE("a learner that diverges has lost infinitely much") {
  const auto data = logistic_data(600, 10);
  const Stream stream(data, {.nodes = 4});
  const Play lost = play({.name = "", .algorithm = "dpsgd", .graph = isolated(4)}, stream, 1e38, 1);
  CHECK(std::isinf(lost.loss));
}

TEST_CASE("turns tell everyone in turn, and evened shares keep every mass at 1") {
  const auto trust = circle(16, false);
  REQUIRE(properties(*trust).column_stochastic);
  CHECK(mass_of(*trust) < 0.95);
  const auto turns = in_turns(*trust, 2);
  CHECK(turns->period() == 2);
  CHECK(properties(*turns).column_stochastic);
  CHECK(properties(*turns).connected);
  for (Rank node = 0; node < 16; ++node) {
    CHECK(turns->out_peers(node) == trust->out_peers(node));
    CHECK(turns->out_edges(node, 0).size() + turns->out_edges(node, 1).size() ==
          trust->out_edges(node, 0).size());
  }
  const auto even = evened(*trust);
  CHECK(properties(*even).doubly_stochastic());
  CHECK(even->edge_count(0) == trust->edge_count(0));
  CHECK(mass_of(*even) == doctest::Approx(1).epsilon(1e-5));
}

TEST_CASE("alone > with those who return trust > push-sum along all trust > as one") {
  const auto data = logistic_data(3000, 10);
  const std::vector<Learner> entrants = {
      {.name = "isolated", .algorithm = "dpsgd", .graph = isolated(16)},
      {.name = "returned trust", .algorithm = "dpsgd", .graph = circle(16, true)},
      {.name = "push-sum", .algorithm = "pushsum", .graph = circle(16, false)},
      {.name = "central", .algorithm = "allreduce", .graph = nullptr}};
  StudyOptions study;
  study.stream.nodes = 16;
  study.rates = {0.1, 0.3, 1};
  study.seeds = 3;
  const Case result = run_case(data, entrants, study);
  check_order(result);
  INFO(report(result, study));
  for (const Standing& standing : result.standings) {
    CAPTURE(standing.name);
    CHECK(standing.mean(standing.best_rate()) > 0);
  }
}

TEST_CASE("the order holds on real data over a real trust network") {
  const std::filesystem::path folder = data_folder();
  if (folder.empty()) {
    SOTTO_SKIP("SOTTO_DATA is not set");
  }
  const auto list = folder / "trust" / "soc-sign-bitcoinalpha.csv";
  if (!std::filesystem::exists(list) || !std::filesystem::exists(folder / "occupancy") ||
      !std::filesystem::exists(folder / "adult")) {
    SOTTO_SKIP("SOTTO_DATA has no trust list, no occupancy or no adult");
  }
  const auto entrants = learners("file:" + list.string(), 64);
  CHECK(properties(*entrants[2].graph).connected);
  CHECK_FALSE(properties(*entrants[1].graph).connected);
  const auto claimed = std::span(entrants).first(kClaimed + 1);
  for (const std::string set : {"occupancy", "adult"}) {
    const auto pool =
        pooled(set == "adult" ? load_libsvm(folder / "adult" / "a9a.t", {.features = 123})
                              : load_occupancy(folder / "occupancy"));
    for (const double adversarial : {0.0, 0.25}) {
      StudyOptions study;
      study.stream.adversarial = adversarial;
      study.rates = set == "adult" ? std::vector{0.05, 0.1, 0.5} : std::vector{0.2, 0.5, 2.0};
      study.seeds = 2;
      const Case result = run_case(pool, claimed, study);
      INFO(report(result, study));
      check_order(result);
      // Eight bits cost nothing that shows, and save bytes.
      const Standing& exact = result.standings[2];
      const Standing& packed = result.standings[kClaimed];
      CHECK(packed.mean(packed.best_rate()) ==
            doctest::Approx(exact.mean(exact.best_rate())).epsilon(0.02));
      CHECK(packed.bytes < (set == "adult" ? 0.35 : 0.85) * exact.bytes);
    }
  }
}

}  // namespace sotto::test::online_regret_test
