// Graphs that change from round to round: what their rounds are, and what a period multiplies to.
#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <sotto/base/error.h>
#include <sotto/topology/properties.h>
#include <sotto/topology/registry.h>
#include <sotto/topology/spectrum.h>

namespace sotto::test::time_varying_test {

namespace {

using Matrix = std::vector<std::vector<double>>;

Matrix mixing(const Topology& topology, Round round) {
  const auto n = static_cast<std::size_t>(topology.nodes());
  Matrix w(n, std::vector<double>(n));
  for (Rank i = 0; i < topology.nodes(); ++i) {
    w[static_cast<std::size_t>(i)][static_cast<std::size_t>(i)] =
        static_cast<double>(topology.self_weight(i, round));
    for (const Edge& edge : topology.in_edges(i, round)) {
      w[static_cast<std::size_t>(i)][static_cast<std::size_t>(edge.peer)] =
          static_cast<double>(edge.weight);
    }
  }
  return w;
}

Matrix product(const Matrix& a, const Matrix& b) {
  Matrix c(a.size(), std::vector<double>(a.size()));
  for (std::size_t i = 0; i < a.size(); ++i) {
    for (std::size_t k = 0; k < a.size(); ++k) {
      if (a[i][k] != 0) {
        for (std::size_t j = 0; j < a.size(); ++j) {
          c[i][j] += a[i][k] * b[k][j];
        }
      }
    }
  }
  return c;
}

/// The largest distance of an element of W_{τ−1} … W_0 from 1/n.
double distance_from_average(const Topology& topology) {
  Matrix all = mixing(topology, 0);
  for (Round round = 1; round < topology.period(); ++round) {
    all = product(mixing(topology, round), all);
  }
  double largest = 0;
  for (const auto& row : all) {
    for (const double element : row) {
      largest = std::fmax(largest, std::fabs(element - 1.0 / topology.nodes()));
    }
  }
  return largest;
}

void check_round(const Topology& topology, Round round, std::size_t most_peers) {
  const Matrix w = mixing(topology, round);
  for (std::size_t i = 0; i < w.size(); ++i) {
    double row = 0;
    double column = 0;
    for (std::size_t j = 0; j < w.size(); ++j) {
      CHECK(w[i][j] == w[j][i]);
      CHECK(w[i][j] >= 0);
      row += w[i][j];
      column += w[j][i];
    }
    CHECK(row == doctest::Approx(1).epsilon(1e-12));
    CHECK(column == doctest::Approx(1).epsilon(1e-12));
    CHECK(topology.in_edges(static_cast<Rank>(i), round).size() <= most_peers);
  }
}

/// Rounds of the simple base-(k+1) graph, the longer of the two that base:K chooses from.
double most_rounds(int nodes, int k) {
  return 2 * std::floor(std::log(nodes) / std::log(k + 1) + 1e-9) + 2;
}

std::string refusal(std::string_view spec, int nodes) {
  try {
    make_topology(spec, nodes);
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

bool mentions(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("base graphs average exactly after one period, for every node count") {
  for (int nodes = 2; nodes <= 40; ++nodes) {
    for (int k = 1; k <= 4; ++k) {
      CAPTURE(nodes);
      CAPTURE(k);
      const auto topology = make_topology("base:" + std::to_string(k), nodes);
      CHECK(topology->nodes() == nodes);
      CHECK(static_cast<double>(topology->period()) <= most_rounds(nodes, k));
      CHECK(properties(*topology).connected);
      for (Round round = 0; round < topology->period(); ++round) {
        check_round(*topology, round, static_cast<std::size_t>(k));
        CHECK(topology->edge_count(round) > 0);
      }
      CHECK(distance_from_average(*topology) < 1e-6);
    }
  }
}

TEST_CASE("base graphs take the rounds that the paper's figures show") {
  const auto rounds = [](int nodes, int k) {
    return make_topology("base:" + std::to_string(k), nodes)->period();
  };
  CHECK(rounds(8, 1) == 3);   // a hypercube
  CHECK(rounds(9, 2) == 2);   // a hyper-hypercube
  CHECK(rounds(5, 1) == 5);   // the simple base-2 graph: 2 rounds, 1, and 2
  CHECK(rounds(6, 1) == 4);   // pairs of simple base-2 graphs of 3 nodes
  CHECK(rounds(12, 2) == 3);  // 3 · 2 · 2
  CHECK(rounds(7, 6) == 1);   // everyone with everyone
  CHECK(rounds(7, 100) == 1);
  CHECK(rounds(1, 1) == 1);
  const auto five = make_topology("base:1", 5);
  // Parts of 4 and 1: in round 2, node 0 trades with node 4 at |V_1|/n = 4/5.
  REQUIRE(five->in_edges(4, 2).size() == 1);
  CHECK(five->in_edges(4, 2)[0].peer == 0);
  CHECK(five->in_edges(4, 2)[0].weight == doctest::Approx(0.8));
  CHECK(five->edge_count(2) == 2);
}

TEST_CASE("large base graphs average exactly too, and their spectrum says so") {
  for (const int nodes : {300, 1000}) {
    for (const int k : {1, 3}) {
      CAPTURE(nodes);
      CAPTURE(k);
      const auto topology = make_topology("base:" + std::to_string(k), nodes);
      const Spectrum figures = spectrum(*topology);
      CHECK(std::fabs(figures.rho) < 1e-5);
      CHECK(figures.mu == doctest::Approx(1).epsilon(1e-5));
    }
  }
  CHECK(make_topology("base:2", 100000)->nodes() == 100000);
}

TEST_CASE("lazy or weighted otherwise, a base graph stays doubly stochastic") {
  const auto lazy = make_topology("base:1", 5, {.lazy = true});
  CHECK(lazy->in_edges(4, 2)[0].weight == doctest::Approx(0.4));
  const auto metropolis = make_topology("base:1", 5, {.weighting = Weighting::metropolis});
  CHECK(metropolis->in_edges(4, 2)[0].weight == 0.5F);
  for (const auto& topology : {lazy, metropolis}) {
    CHECK(properties(*topology).symmetric);
    CHECK(properties(*topology).doubly_stochastic());
  }
}

TEST_CASE("every round of matchings pairs all nodes, one at most left over") {
  for (const int nodes : {1, 2, 3, 4, 7, 8, 33}) {
    CAPTURE(nodes);
    const auto topology = make_topology("matching", nodes);
    CHECK(topology->period() == (nodes > 2 ? 64 : 1));
    CHECK(properties(*topology).connected);
    for (Round round = 0; round < topology->period(); ++round) {
      check_round(*topology, round, 1);
      CHECK(topology->edge_count(round) == 2 * static_cast<std::size_t>(nodes / 2));
      for (Rank node = 0; node < nodes; ++node) {
        for (const Edge& edge : topology->in_edges(node, round)) {
          CHECK(edge.weight == 0.5F);
        }
      }
    }
  }
}

TEST_CASE("matchings are their seed's and round's own, and all pairs are as likely") {
  constexpr int kNodes = 6;
  constexpr int kRounds = 3000;
  const auto topology = make_topology("matching:3000", kNodes, {.seed = 4});
  const auto again = make_topology("matching:3000", kNodes, {.seed = 4});
  const auto shorter = make_topology("matching:40", kNodes, {.seed = 4});
  const auto other = make_topology("matching:3000", kNodes, {.seed = 5});
  int different = 0;
  int met = 0;
  for (Round round = 0; round < kRounds; ++round) {
    const Rank peer = topology->in_edges(0, round)[0].peer;
    CHECK(peer == again->in_edges(0, round)[0].peer);
    CHECK((round >= 40 || peer == shorter->in_edges(0, round)[0].peer));
    different += peer != other->in_edges(0, round)[0].peer ? 1 : 0;
    met += peer == 3 ? 1 : 0;
  }
  // Binomial with p = 1/5 of meeting any node, and so 4/5 of meeting another one.
  const double deviation = std::sqrt(kRounds * 0.2 * 0.8);
  CHECK(std::fabs(met - kRounds * 0.2) < 5 * deviation);
  CHECK(std::fabs(different - kRounds * 0.8) < 5 * deviation);
}

TEST_CASE("a matching may stay for rounds before the next one comes") {
  const auto quick = make_topology("matching:5", 9, {.seed = 2});
  const auto slow = make_topology("matching:5x3", 9, {.seed = 2});
  CHECK(slow->name() == "matching:5x3");
  REQUIRE(slow->period() == 15);
  for (Round round = 0; round < 30; ++round) {
    for (Rank node = 0; node < 9; ++node) {
      const auto a = slow->in_edges(node, round);
      const auto b = quick->in_edges(node, round / 3);
      REQUIRE(a.size() == b.size());
      CHECK((a.empty() || a[0].peer == b[0].peer));
    }
  }
}

TEST_CASE("an exponential graph of one peer a round is doubly stochastic for every node count") {
  for (int nodes = 1; nodes <= 40; ++nodes) {
    CAPTURE(nodes);
    const auto topology = make_topology("one-peer-exponential", nodes);
    // Hops of 1, 2, 4, … below n: ⌈log2 n⌉ of them.
    Round hops = 0;
    while ((1 << hops) < nodes) {
      ++hops;
    }
    CHECK(topology->period() == std::max<Round>(hops, 1));
    for (Round round = 0; round < hops; ++round) {
      std::set<Rank> heard;
      for (Rank node = 0; node < nodes; ++node) {
        const auto edges = topology->in_edges(node, round);
        REQUIRE(edges.size() == 1);
        CHECK(edges[0].peer == (node + nodes - (1 << round)) % nodes);
        CHECK(edges[0].weight == 0.5F);
        CHECK(topology->self_weight(node, round) == 0.5F);
        heard.insert(edges[0].peer);
      }
      CHECK(heard.size() == static_cast<std::size_t>(nodes));
    }
    // Exact after a period for powers of two, and never otherwise.
    const bool power_of_two = (nodes & (nodes - 1)) == 0;
    CHECK((distance_from_average(*topology) < 1e-9) == power_of_two);
  }
}

TEST_CASE("a time-varying graph that cannot be is refused with what would do") {
  CHECK(mentions(refusal("base", 8), "it is written base:K"));
  for (const char* spec : {"base:0", "base:-1", "base:1.5", "base:x", "base:99999999999"}) {
    CAPTURE(spec);
    CHECK(mentions(refusal(spec, 8), "whole number from 1"));
  }
  CHECK(mentions(refusal("base:5000", 10000), "take a sparse graph"));
  CHECK(mentions(refusal("base:1", 0), "any count from 1"));
  for (const char* spec : {"matching:0", "matching:-1", "matching:x", "matching:65537",
                           "matching:8x", "matching:8x0", "matching:8x8193", "matching:8x2x2"}) {
    CAPTURE(spec);
    CHECK(mentions(refusal(spec, 8), "65536 rounds in all at most"));
  }
  CHECK(mentions(refusal("matching:1", 8), "more rounds would do"));
  CHECK(mentions(refusal("matching:65536", 1000), "fewer rounds would do"));
  CHECK(make_topology("matching:1", 2)->nodes() == 2);
}

}  // namespace sotto::test::time_varying_test
