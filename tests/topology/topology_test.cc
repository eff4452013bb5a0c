#include <sotto/topology/topology.h>

#include <limits>
#include <string>

#include <doctest/doctest.h>
#include <sotto/base/error.h>
#include <sotto/topology/registry.h>

namespace sotto::test::topology_test {

namespace {

double row_sum(const Topology& topology, Rank node, Round round) {
  double sum = topology.self_weight(node, round);
  for (const Edge& edge : topology.in_edges(node, round)) {
    sum += static_cast<double>(edge.weight);
  }
  return sum;
}

Topology one_round(int nodes, std::vector<WeightedEdge> edges) {
  return Topology("test", nodes, {std::move(edges)});
}

}  // namespace

TEST_CASE("an 8-node ring has weights 1/3 and sorted neighbours") {
  const auto ring = make_topology("ring", 8);
  CHECK(ring->nodes() == 8);
  CHECK(ring->period() == 1);
  CHECK(ring->edge_count(0) == 16);
  CHECK(ring->in_peers(0) == std::vector<Rank>{1, 7});
  CHECK(ring->out_peers(5) == std::vector<Rank>{4, 6});
  for (Rank node = 0; node < 8; ++node) {
    for (const Edge& edge : ring->in_edges(node, 3)) {
      CHECK(edge.weight == 1.0F / 3.0F);
    }
    CHECK(row_sum(*ring, node, 3) == 1.0);
  }
}

TEST_CASE("one and two nodes need no special care") {
  for (const std::string spec : {"ring", "complete", "star", "line", "grid", "torus", "hypercube",
                                 "exponential", "one-peer-exponential", "base:1", "matching"}) {
    CAPTURE(spec);
    const auto one = make_topology(spec, 1);
    CHECK(one->edge_count(0) == 0);
    CHECK(one->self_weight(0, 0) == 1.0F);
    const auto two = make_topology(spec, 2);
    CHECK(two->edge_count(0) == 2);
    CHECK(two->self_weight(1, 0) == 0.5F);
    CHECK(two->in_edges(1, 0)[0].peer == 0);
    CHECK(two->in_edges(1, 0)[0].weight == 0.5F);
  }
}

TEST_CASE("rows sum to exactly 1 in real arithmetic, and no weight is negative") {
  for (const std::string spec : {"ring", "complete", "star", "line", "grid", "torus", "exponential",
                                 "one-peer-exponential", "base:2", "matching:8"}) {
    for (const int nodes : {1, 2, 3, 5, 7, 12, 33, 100, 641}) {
      for (const bool lazy : {false, true}) {
        CAPTURE(spec);
        CAPTURE(nodes);
        const auto topology = make_topology(spec, nodes, {.lazy = lazy});
        for (Round round = 0; round < topology->period(); ++round) {
          for (Rank node = 0; node < nodes; ++node) {
            REQUIRE(row_sum(*topology, node, round) == 1.0);
            REQUIRE(topology->self_weight(node, round) >= (lazy ? 0.5F : 0.0F));
          }
        }
      }
    }
  }
}

TEST_CASE("the hub of a very large star keeps a weight for itself") {
  const auto star = make_topology("star", 20000);
  CHECK(star->self_weight(0, 0) > 0.0F);
  CHECK(row_sum(*star, 0, 0) == 1.0);
  CHECK(row_sum(*star, 7, 0) == 1.0);
  CHECK(star->in_edges(7, 0)[0].weight == star->in_edges(0, 0)[6].weight);
}

TEST_CASE("shares complete the columns, so that mass is conserved exactly") {
  const auto star = make_topology("star", 7, {.weighting = Weighting::shares});
  for (Rank node = 0; node < 7; ++node) {
    double sum = star->self_weight(node, 0);
    for (const Edge& edge : star->out_edges(node, 0)) {
      sum += static_cast<double>(edge.weight);
    }
    CHECK(sum == 1.0);
  }
  CHECK(star->self_weight(0, 0) == doctest::Approx(1.0 / 7));
  CHECK(star->self_weight(1, 0) == 0.5F);
}

TEST_CASE("a period selects the graph of a round") {
  const auto topology = make_topology("one-peer-exponential", 8);
  CHECK(topology->period() == 3);
  CHECK(topology->time_varying());
  const Round large = (Round{1} << 60) * 3;
  CHECK(topology->in_edges(0, 0)[0].peer == 7);
  CHECK(topology->in_edges(0, 1)[0].peer == 6);
  CHECK(topology->in_edges(0, large + 2)[0].peer == 4);
  CHECK(topology->out_edges(0, large + 2)[0].peer == 4);
  CHECK(topology->in_peers(0) == std::vector<Rank>{4, 6, 7});
  CHECK(topology->out_peers(0) == std::vector<Rank>{1, 2, 4});
}

TEST_CASE("a graph that is none is refused") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  CHECK_THROWS_AS(one_round(0, {}), Error);
  CHECK_THROWS_AS(one_round(-1, {}), Error);
  CHECK_THROWS_AS(one_round(2, {{0, 2, 0.5}}), Error);
  CHECK_THROWS_AS(one_round(2, {{-1, 0, 0.5}}), Error);
  CHECK_THROWS_AS(one_round(2, {{1, 1, 0.5}}), Error);
  CHECK_THROWS_AS(one_round(2, {{0, 1, 0.3}, {0, 1, 0.3}}), Error);
  for (const double weight : {0.0, -0.0, -0.5, nan, infinity, 1e308, 1e-60, 1.5}) {
    CAPTURE(weight);
    CHECK_THROWS_AS(one_round(2, {{0, 1, weight}}), Error);
  }
  CHECK_THROWS_AS(Topology("none", 2, {}), Error);
  CHECK_THROWS_AS(Topology("self", 2, {{}}, {{1.0}}), Error);
  CHECK_THROWS_AS(Topology("self", 2, {{}}, {{1.0, nan}}), Error);
  CHECK_THROWS_AS(Topology("self", 2, {{}}, {{1.0, -0.1}}), Error);
  CHECK_THROWS_AS(Topology("self", 2, {{}}, {{1.0, 1.0}, {1.0, 1.0}}), Error);
}

}  // namespace sotto::test::topology_test
