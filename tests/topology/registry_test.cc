#include <sotto/topology/registry.h>

#include <cmath>
#include <string>
#include <utility>

#include <doctest/doctest.h>
#include <sotto/base/error.h>
#include <sotto/base/philox.h>
#include <sotto/topology/properties.h>
#include <sotto/topology/spectrum.h>

namespace sotto::test::registry_test {

namespace {

/// The message with which a request is refused; empty when it is not.
std::string refusal(std::string_view spec, int nodes, const TopologyOptions& options = {}) {
  try {
    make_topology(spec, nodes, options);
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

bool mentions(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

bool same_graph(const Topology& a, const Topology& b) {
  for (Rank node = 0; node < a.nodes(); ++node) {
    if (a.in_peers(node) != b.in_peers(node)) {
      return false;
    }
  }
  return a.nodes() == b.nodes();
}

}  // namespace

TEST_CASE("every family's example builds") {
  for (const TopologyInfo& info : topologies()) {
    const std::string example(info.example);
    CAPTURE(example);
    if (info.name == "file") {
      CHECK(mentions(refusal(info.example, 8), "there is no such file"));
      continue;
    }
    const int nodes = info.name == "edges" ? 3 : 8;  // those that the list names
    const auto topology = make_topology(info.example, nodes);
    CHECK(topology->nodes() == nodes);
    CHECK(topology->time_varying() == info.time_varying);
    const GraphProperties graph = properties(*topology);
    CHECK(graph.directed == info.directed);
    CHECK(graph.connected);
    CHECK(graph.doubly_stochastic());
  }
}

TEST_CASE("a refusal says what would do") {
  CHECK(mentions(refusal("rng", 8), "did you mean ring? There are ring; complete"));
  CHECK(mentions(refusal("", 8), "there are ring"));
  CHECK(mentions(refusal("ring:3", 8), "it is written ring"));
  CHECK(mentions(refusal("torus:", 8), "it is written torus[:RxC]"));
  CHECK(mentions(refusal("regular", 8), "it is written regular:K"));
  CHECK(mentions(refusal("ring", 0), "any count from 1"));
  CHECK(mentions(refusal("ring", -7), "any count from 1"));
  CHECK(mentions(refusal("ring", 1 << 21), "any count from 1"));
  CHECK(mentions(refusal("complete", 100000), "sparse"));
  CHECK(mentions(refusal("hypercube", 12), "8 or 16 nodes"));
  CHECK(mentions(refusal("torus:3x4", 13), "3x4 is 12 nodes, not 13"));
  CHECK(mentions(refusal("torus:3", 3), "ROWSxCOLUMNS"));
  CHECK(mentions(refusal("torus:3x", 3), "ROWSxCOLUMNS"));
  CHECK(mentions(refusal("torus:0x3", 0), "ROWSxCOLUMNS"));
  CHECK(mentions(refusal("torus:-1x-3", 3), "ROWSxCOLUMNS"));
  CHECK(mentions(refusal("torus:3x4x5", 60), "ROWSxCOLUMNS"));
  CHECK(mentions(refusal("torus:65536x65536", 0), "more than"));
  CHECK(mentions(refusal("torus:99999999999x1", 0), "ROWSxCOLUMNS"));
  CHECK(mentions(refusal("exponential", 9, {.weighting = Weighting::metropolis}), "undirected"));
  CHECK(mentions(refusal("regular:3", 9), "even number of nodes, or degree 2"));
  CHECK(mentions(refusal("regular:8", 8), "degrees up to 7"));
  CHECK(mentions(refusal("regular:1", 4), "not connected"));
  CHECK(mentions(refusal("regular:0", 4), "not connected"));
  CHECK(mentions(refusal("regular:-2", 4), "whole number"));
  CHECK(mentions(refusal("regular:2.5", 4), "whole number"));
  CHECK(mentions(refusal("erdos:0", 4), "probability"));
  CHECK(mentions(refusal("erdos:1.5", 4), "probability"));
  CHECK(mentions(refusal("erdos:nan", 4), "probability"));
  CHECK(mentions(refusal("erdos:0.01", 50), "a probability of about 0.16"));
  CHECK(mentions(refusal("erdos:0.5", 100000), "up to 32768"));
  for (const char* spec : {"edges:0", "edges:0-", "edges:0-1,", "edges:0-1;1-2", "edges:1-1",
                           "edges:-1-2", "edges:0--1", "edges:0-1-2", "edges:a-b"}) {
    CAPTURE(spec);
    CHECK(mentions(refusal(spec, 4), "pairs of ranks"));
  }
  CHECK(mentions(refusal("edges:0-4", 4), "4 is none"));
  CHECK(mentions(refusal("edges:0-1048576", 0), "any rank below"));
  CHECK_THROWS_AS(parse_weighting("Metropolis"), Error);
}

TEST_CASE("listed edges run both ways, with Metropolis weights") {
  const auto star = make_topology("edges:2-0,1-2,2-3,0-2", 0);
  CHECK(star->nodes() == 4);
  const GraphProperties graph = properties(*star);
  CHECK(graph.edges == 3);
  CHECK(graph.symmetric);
  CHECK(graph.connected);
  CHECK(star->in_edges(0, 0).size() == 1);
  CHECK(star->in_edges(0, 0)[0].peer == 2);
  CHECK(star->in_edges(0, 0)[0].weight == doctest::Approx(0.25));
  CHECK_FALSE(properties(*make_topology("edges:0-1", 3)).connected);
}

TEST_CASE("names are completed, so that a graph can be asked for again") {
  CHECK(make_topology("torus", 12)->name() == "torus:3x4");
  CHECK(make_topology("torus", 36)->name() == "torus:6x6");
  CHECK(make_topology("grid", 7)->name() == "grid:1x7");
  CHECK(make_topology("path", 7)->name() == "line");
  CHECK(make_topology("torus:3x5", 0)->nodes() == 15);
  CHECK(make_topology("erdos:0.50", 6)->name() == "erdos:0.5");
}

TEST_CASE("degenerate grids have no loops and no double edges") {
  const auto edges = [](const char* spec) { return properties(*make_topology(spec, 0)).edges; };
  CHECK(edges("torus:1x1") == 0);
  CHECK(edges("torus:1x2") == 1);
  CHECK(edges("torus:2x2") == 4);
  CHECK(edges("torus:2x3") == 9);
  CHECK(edges("torus:7x1") == 7);
  CHECK(edges("grid:1x1") == 0);
  CHECK(edges("grid:2x2") == 4);
}

TEST_CASE("random regular graphs are regular, connected, and their seed's own") {
  for (const std::pair<int, int>& size :
       {std::pair{1, 0}, {2, 1}, {3, 2}, {4, 3}, {8, 3}, {9, 4}, {50, 2}, {50, 49}, {101, 6}}) {
    const int nodes = size.first;
    const int degree = size.second;
    for (std::uint64_t seed = 0; seed < 10; ++seed) {
      CAPTURE(nodes);
      CAPTURE(degree);
      CAPTURE(seed);
      const auto topology =
          make_topology("regular:" + std::to_string(degree), nodes, {.seed = seed});
      const GraphProperties graph = properties(*topology);
      CHECK(graph.degree_min == degree);
      CHECK(graph.degree_max == degree);
      CHECK(graph.connected);
      CHECK(graph.symmetric);
    }
  }
  const auto first = make_topology("regular:4", 60, {.seed = 1});
  CHECK(same_graph(*first, *make_topology("regular:4", 60, {.seed = 1})));
  CHECK_FALSE(same_graph(*first, *make_topology("regular:4", 60, {.seed = 2})));
}

TEST_CASE("a random regular graph is the expander that it should be") {
  // Friedman: |λ| of the adjacency matrix is below 2 √(K − 1) + ε with high probability.
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    CAPTURE(seed);
    const double rho = spectrum(*make_topology("regular:4", 400, {.seed = seed})).rho;
    CHECK(rho < (1 + 2 * std::sqrt(3.0)) / 5 + 0.03);
    CHECK(rho > 0.8);
  }
}

TEST_CASE("Erdős–Rényi graphs have the edges that P promises") {
  std::size_t edges = 0;
  constexpr int kGraphs = 20;
  for (std::uint64_t seed = 0; seed < kGraphs; ++seed) {
    edges += properties(*make_topology("erdos:0.3", 60, {.seed = seed})).edges;
  }
  const double pairs = kGraphs * 60.0 * 59.0 / 2;
  CHECK(std::abs(static_cast<double>(edges) - 0.3 * pairs) < 5 * std::sqrt(pairs * 0.21));
  CHECK(properties(*make_topology("erdos:1", 9)).edges == 36);
  CHECK(make_topology("erdos:0.2", 1)->nodes() == 1);
}

TEST_CASE("over many random graphs, what must hold of every topology holds") {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    RandomStream random({.seed = seed, .purpose = Purpose::test});
    const int nodes = 2 + static_cast<int>(random.below(40));
    const bool lazy = random.below(2) == 1;
    const std::string spec = random.below(2) == 1 ? "erdos:0.5" : "regular:2";
    const auto weighting = static_cast<Weighting>(random.below(3));
    if (nodes == 2 && spec == "regular:2") {
      continue;
    }
    CAPTURE(seed);
    CAPTURE(spec);
    CAPTURE(nodes);
    const auto topology =
        make_topology(spec, nodes, {.weighting = weighting, .lazy = lazy, .seed = seed});
    const GraphProperties graph = properties(*topology);
    CHECK(graph.connected);
    CHECK_FALSE(graph.directed);
    CHECK((weighting == Weighting::shares || graph.row_stochastic));
    CHECK((weighting == Weighting::uniform || graph.column_stochastic));
    CHECK((weighting != Weighting::metropolis || graph.symmetric));
    std::size_t in_count = 0;
    std::size_t out_count = 0;
    for (Rank node = 0; node < nodes; ++node) {
      double row = static_cast<double>(topology->self_weight(node, 0));
      double column = row;
      CHECK(row >= (lazy ? 0.5 : 0.0));
      for (const Edge& edge : topology->in_edges(node, 0)) {
        row += static_cast<double>(edge.weight);
        CHECK(edge.weight > 0);
        bool found = false;
        for (const Edge& back : topology->out_edges(edge.peer, 0)) {
          found |= back.peer == node && back.weight == edge.weight;
        }
        CHECK(found);
        ++in_count;
      }
      for (const Edge& edge : topology->out_edges(node, 0)) {
        column += static_cast<double>(edge.weight);
        ++out_count;
      }
      CHECK((weighting == Weighting::shares ? column : row) == 1.0);
      CHECK((weighting != Weighting::metropolis || column == 1.0));
    }
    CHECK(in_count == out_count);
    CHECK(in_count == topology->edge_count(0));
    CHECK(in_count == 2 * graph.edges);
  }
}

}  // namespace sotto::test::registry_test
