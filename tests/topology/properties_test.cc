#include <string>

#include <doctest/doctest.h>
#include <sotto/topology/properties.h>
#include <sotto/topology/registry.h>

namespace sotto::test::properties_test {

TEST_CASE("undirected families are symmetric and doubly stochastic") {
  for (const std::string spec : {"ring", "complete", "star", "line", "grid", "torus"}) {
    for (const int nodes : {1, 2, 3, 9, 40, 301}) {
      CAPTURE(spec);
      CAPTURE(nodes);
      const GraphProperties graph = properties(*make_topology(spec, nodes));
      CHECK_FALSE(graph.directed);
      CHECK(graph.symmetric);
      CHECK(graph.doubly_stochastic());
      CHECK(graph.connected);
    }
  }
}

TEST_CASE("degrees and edges are those of the graph") {
  const auto facts = [](const char* spec, int nodes) {
    return properties(*make_topology(spec, nodes));
  };
  CHECK(facts("ring", 8).edges == 8);
  CHECK(facts("ring", 2).edges == 1);
  CHECK(facts("complete", 9).edges == 36);
  CHECK(facts("star", 9).degree_min == 1);
  CHECK(facts("star", 9).degree_max == 8);
  CHECK(facts("line", 9).edges == 8);
  CHECK(facts("grid:3x4", 12).edges == 17);
  CHECK(facts("torus:3x4", 12).edges == 24);
  CHECK(facts("torus:2x4", 8).degree_max == 3);
  CHECK(facts("torus:1x5", 5).edges == 5);
  CHECK(facts("hypercube", 16).edges == 32);
  CHECK(facts("exponential", 9).edges == 36);
  CHECK(facts("exponential", 9).degree_min == 4);
  CHECK(facts("one-peer-exponential", 9).edges == 36);
  CHECK(facts("one-peer-exponential", 9).degree_max == 1);
  CHECK(facts("ring", 1).degree_min == 0);
}

TEST_CASE("directed circulants are doubly stochastic without being symmetric") {
  for (const std::string spec : {"exponential", "one-peer-exponential"}) {
    for (const int nodes : {5, 7, 16, 100}) {
      CAPTURE(spec);
      CAPTURE(nodes);
      const GraphProperties graph = properties(*make_topology(spec, nodes));
      CHECK(graph.directed);
      CHECK_FALSE(graph.symmetric);
      CHECK(graph.doubly_stochastic());
      CHECK(graph.connected);
    }
  }
}

TEST_CASE("weightings keep what they promise on an irregular graph") {
  const auto star = [](Weighting weighting) {
    return properties(*make_topology("star", 6, {.weighting = weighting}));
  };
  CHECK(star(Weighting::metropolis).doubly_stochastic());
  CHECK(star(Weighting::uniform).row_stochastic);
  CHECK_FALSE(star(Weighting::uniform).column_stochastic);
  CHECK_FALSE(star(Weighting::shares).row_stochastic);
  CHECK(star(Weighting::shares).column_stochastic);
}

TEST_CASE("connectivity is strong, and over all rounds together") {
  const auto connected = [](int nodes, std::vector<std::vector<WeightedEdge>> rounds) {
    return properties(Topology("test", nodes, std::move(rounds))).connected;
  };
  CHECK_FALSE(connected(2, {{}}));
  CHECK_FALSE(connected(2, {{{0, 1, 0.5}}}));
  CHECK(connected(2, {{{0, 1, 0.5}}, {{1, 0, 0.5}}}));
  CHECK(connected(3, {{{0, 1, 0.5}, {1, 2, 0.5}, {2, 0, 0.5}}}));
  CHECK_FALSE(connected(4, {{{0, 1, 0.5}, {1, 0, 0.5}, {2, 3, 0.5}, {3, 2, 0.5}}}));
}

}  // namespace sotto::test::properties_test
