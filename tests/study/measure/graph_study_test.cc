// What a graph promises before anything runs on it (study/measure/graph_study.h).
#include <cmath>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/base/error.h>
#include <sotto/base/philox.h>
#include <sotto/study/json/graph_study.h>
#include <sotto/study/measure/graph_study.h>
#include <sotto/topology/registry.h>

namespace sotto::test::graph_study_test {

using study::GraphObstacle;
using study::study_graph;

namespace {

std::shared_ptr<const Topology> graph_of(int nodes, std::vector<WeightedEdge> edges) {
  return std::make_shared<const Topology>("drawn", nodes,
                                          std::vector<std::vector<WeightedEdge>>{std::move(edges)});
}

}  // namespace

TEST_CASE("a ring of eight allows DCD-PSGD six bits and more") {
  const auto found = study_graph(make_topology("ring", 8, {}));
  const double rho = (1 + 2 * std::sqrt(0.5)) / 3;
  CHECK(found.suits_dcd);
  CHECK(found.obstacle == GraphObstacle::none);
  CHECK(found.spectrum.dcd_alpha_limit == doctest::Approx((1 - rho) * 3 / 8).epsilon(1e-6));
  std::set<std::string> within;
  for (const study::CompressorFit& fit : found.compressors) {
    CAPTURE(fit.compressor);
    CHECK(fit.alpha > 0);
    CHECK(fit.within_theory == (fit.unbiased && fit.alpha < found.spectrum.dcd_alpha_limit));
    if (fit.within_theory) {
      within.insert(fit.compressor);
    }
  }
  CHECK(within == std::set<std::string>{"quant:8", "quant:6"});
  CHECK(found.compressors.size() == study::usual_compressors().size());
}

TEST_CASE("a sharper quantizer is never further from the limit") {
  const auto found =
      study_graph(make_topology("ring", 8, {}), {"quant:8", "quant:6", "quant:4", "quant:2"}, 7);
  for (std::size_t k = 1; k < found.compressors.size(); ++k) {
    CHECK(found.compressors[k - 1].alpha < found.compressors[k].alpha);
  }
}

TEST_CASE("no compressor is within a theory that does not cover the graph") {
  for (const char* name : {"matching:5", "base:2", "exponential"}) {
    CAPTURE(name);
    const auto found = study_graph(make_topology(name, 8, {}));
    CHECK_FALSE(found.suits_dcd);
    for (const study::CompressorFit& fit : found.compressors) {
      CHECK_FALSE(fit.within_theory);
    }
    CHECK(study::graph_study_json(found, 0).at("dcd_alpha_limit").is_null());
  }
}

TEST_CASE("models do not come together where nodes are out of reach, or only swap") {
  const auto obstacle = [](int nodes, std::vector<WeightedEdge> edges) {
    return study_graph(graph_of(nodes, std::move(edges)), {}).obstacle;
  };
  CHECK(obstacle(2, {{0, 1, 1}, {1, 0, 1}}) == GraphObstacle::no_gap);
  CHECK(obstacle(2, {{0, 1, 0.5}, {1, 0, 0.5}}) == GraphObstacle::none);
  CHECK(obstacle(2, {{0, 1, 0.5}}) == GraphObstacle::not_connected);
  CHECK(obstacle(1, {}) == GraphObstacle::none);
}

TEST_CASE("the JSON's weights and self-weights sum to 1 in each row") {
  constexpr std::uint64_t kSeed = 40417;
  CAPTURE(kSeed);
  RandomStream random({.seed = kSeed});
  for (int trial = 0; trial < 20; ++trial) {
    const int nodes = 6 + static_cast<int>(random.below(20));
    CAPTURE(nodes);
    const auto found = study_graph(make_topology("ring", nodes, {}), {});
    const Json json = study::graph_study_json(found, 0);
    std::vector<double> sums = json.at("self_weights").get<std::vector<double>>();
    for (const Json& edge : json.at("weights")) {
      sums[edge.at("to").get<std::size_t>()] += edge.at("weight").get<double>();
    }
    for (const double sum : sums) {
      CHECK(sum == doctest::Approx(1));
    }
  }
}

TEST_CASE("a specification that names no compressor is refused") {
  CHECK_THROWS_AS(study_graph(make_topology("ring", 8, {}), {"zip"}), Error);
}

}  // namespace sotto::test::graph_study_test
