#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <sotto/base/philox.h>
#include <sotto/topology/internal/eigenvalues.h>
#include <sotto/topology/properties.h>
#include <sotto/topology/registry.h>
#include <sotto/topology/spectrum.h>

namespace sotto::test::spectrum_test {

using doctest::Approx;

namespace {

constexpr double kPi = std::numbers::pi;

/// 1 − λ of the ring's Fourier mode k; accurate for small angles.
double ring_laplacian(int nodes, int k) {
  const double s = std::sin(kPi * k / nodes);
  return 4.0 / 3.0 * s * s;
}

std::size_t at(Rank node) { return static_cast<std::size_t>(node); }

/// A graph like `topology`, its nodes in random order.
Topology renumbered(const Topology& topology) {
  RandomStream random({.seed = 17, .purpose = Purpose::test});
  std::vector<Rank> name(at(topology.nodes()));
  std::iota(name.begin(), name.end(), 0);
  for (std::size_t i = name.size(); i > 1; --i) {
    std::swap(name[i - 1], name[random.below(i)]);
  }
  std::vector<std::vector<WeightedEdge>> rounds;
  for (Round round = 0; round < topology.period(); ++round) {
    std::vector<WeightedEdge> edges;
    for (Rank node = 0; node < topology.nodes(); ++node) {
      for (const Edge& edge : topology.in_edges(node, round)) {
        edges.push_back({name[at(edge.peer)], name[at(node)], static_cast<double>(edge.weight)});
      }
    }
    rounds.push_back(std::move(edges));
  }
  return Topology("renumbered", topology.nodes(), std::move(rounds));
}

Approx close(double value) { return Approx(value).epsilon(1e-6); }

}  // namespace

TEST_CASE("the ring has its closed-form spectrum, also where the gap is tiny") {
  for (const int nodes : {3, 4, 5, 8, 9, 64, 101, 256, 257, 1000, 3001}) {
    CAPTURE(nodes);
    const Spectrum ring = spectrum(*make_topology("ring", nodes));
    const double gap = ring_laplacian(nodes, 1);
    const double mu = ring_laplacian(nodes, nodes / 2);
    // Small rings (3 and 4 nodes) are limited by their negative end, the others by λ_2.
    CHECK(ring.spectral_gap == close(std::min(gap, 2 - mu)));
    CHECK(ring.rho == Approx(1 - std::min(gap, 2 - mu)).epsilon(1e-7).scale(1));
    CHECK(ring.mu == close(mu));
    CHECK(ring.lambda_min == close(1 - mu));
    CHECK(ring.dcd_alpha_limit == close(ring.spectral_gap / (2 * mu)));
  }
}

TEST_CASE("a ring under other names has the same spectrum: dense and Lanczos agree with theory") {
  for (const int nodes : {3, 4, 8, 101, 256, 257, 1000, 3001}) {
    CAPTURE(nodes);
    // A connected 2-regular graph is a ring in random order.
    const Spectrum ring = spectrum(*make_topology("regular:2", nodes, {.seed = 5}));
    const double mu = ring_laplacian(nodes, nodes / 2);
    const double gap = std::min(ring_laplacian(nodes, 1), 2 - mu);
    CHECK(ring.spectral_gap == close(gap));
    CHECK(ring.rho == Approx(1 - gap).epsilon(1e-7).scale(1));
    CHECK(ring.mu == close(mu));
    CHECK(ring.lambda_min == close(1 - mu));
  }
}

TEST_CASE("figures do not depend on how the nodes are numbered") {
  for (const std::string spec : {"ring", "complete", "torus", "star", "exponential",
                                 "one-peer-exponential", "base:2", "matching"}) {
    for (const int nodes : {2, 9, 30, 64, 300}) {
      for (const bool lazy : {false, true}) {
        CAPTURE(spec);
        CAPTURE(nodes);
        CAPTURE(lazy);
        const auto topology = make_topology(spec, nodes, {.lazy = lazy});
        const Spectrum one = spectrum(*topology);
        const Spectrum other = spectrum(renumbered(*topology));
        CHECK(one.spectral_gap == Approx(other.spectral_gap).epsilon(1e-6));
        CHECK(one.mu == Approx(other.mu).epsilon(1e-6));
        CHECK(one.lambda_min == Approx(other.lambda_min).epsilon(1e-6));
      }
    }
  }
}

TEST_CASE("dense and Lanczos agree on random graphs") {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const int nodes = 20 + static_cast<int>(seed);
    CAPTURE(seed);
    const auto topology = make_topology("erdos:0.3", nodes, {.seed = seed});
    const auto map = [&](std::span<const double> x, std::span<double> y) {
      for (Rank node = 0; node < nodes; ++node) {
        double sum = static_cast<double>(topology->self_weight(node, 0)) * x[at(node)];
        for (const Edge& edge : topology->in_edges(node, 0)) {
          sum += static_cast<double>(edge.weight) * x[at(edge.peer)];
        }
        y[at(node)] = sum;
      }
    };
    const auto dense = internal::extreme_eigenvalues_dense(at(nodes), map);
    const auto lanczos =
        internal::extreme_eigenvalues_lanczos(at(nodes), map, internal::Ends::both);
    CHECK(lanczos.smallest == Approx(dense.smallest).epsilon(1e-8));
    CHECK(lanczos.largest == Approx(dense.largest).epsilon(1e-8));
  }
}

TEST_CASE("DCD's limit on an 8-node ring is 0.073") {
  CHECK(spectrum(*make_topology("ring", 8)).dcd_alpha_limit == Approx(0.0732).epsilon(1e-3));
}

TEST_CASE("one node has nothing to agree on") {
  const Spectrum one = spectrum(*make_topology("complete", 1));
  CHECK(one.rho == 0);
  CHECK(one.spectral_gap == 1);
  CHECK(one.mu == 0);
  CHECK(one.lambda_min == 1);
  CHECK(one.dcd_alpha_limit == std::numeric_limits<double>::infinity());
}

TEST_CASE("the complete graph averages at once") {
  for (const int nodes : {2, 3, 10, 257, 400}) {
    CAPTURE(nodes);
    const Spectrum complete = spectrum(*make_topology("complete", nodes));
    CHECK(std::abs(complete.rho) < 1e-5);
    CHECK(complete.mu == Approx(1).epsilon(1e-5));
    CHECK(complete.dcd_alpha_limit == Approx(0.5).epsilon(1e-5));
  }
}

TEST_CASE("the hypercube's eigenvalues are 1 − 2j/(k + 1)") {
  for (const int dimension : {1, 2, 3, 6, 8, 10, 12}) {
    CAPTURE(dimension);
    const Spectrum cube = spectrum(*make_topology("hypercube", 1 << dimension));
    const double step = 2.0 / (dimension + 1);
    CHECK(cube.mu == close(dimension * step));
    CHECK(cube.lambda_min == close(1 - dimension * step));
    CHECK(cube.rho == Approx(std::max(1 - step, dimension * step - 1)).epsilon(1e-6));
  }
}

TEST_CASE("a torus is the sum of its rings, a line the folded ring") {
  const auto cosine = [](int k, int n) { return std::cos(2 * kPi * k / n); };
  const Spectrum torus = spectrum(*make_topology("torus:20x31", 620));
  const double lambda2 = (1 + 2 * 1 + 2 * cosine(1, 31)) / 5;
  const double lambda_min = (1 + 2 * cosine(10, 20) + 2 * cosine(15, 31)) / 5;
  CHECK(torus.rho == close(lambda2));
  CHECK(torus.lambda_min == close(lambda_min));
  // Metropolis on a line puts 2/3 on both ends: the quotient of a ring of 2 n nodes.
  const Spectrum line = spectrum(*make_topology("line", 700));
  CHECK(line.spectral_gap == close(ring_laplacian(1400, 1)));
}

TEST_CASE("a star mixes as slowly as its leaves") {
  for (const int nodes : {3, 16, 500}) {
    CAPTURE(nodes);
    const Spectrum star = spectrum(*make_topology("star", nodes));
    CHECK(star.spectral_gap == Approx(1.0 / nodes).epsilon(1e-4));
    CHECK(star.mu == Approx(1.0).epsilon(1e-4));
  }
}

TEST_CASE("lazy weights halve every distance from 1") {
  for (const std::string spec : {"ring", "star", "complete", "torus"}) {
    CAPTURE(spec);
    const Spectrum plain = spectrum(*make_topology(spec, 12));
    const Spectrum lazy = spectrum(*make_topology(spec, 12, {.lazy = true}));
    CHECK(lazy.mu == Approx(plain.mu / 2).epsilon(1e-6));
    CHECK(lazy.lambda_min == Approx((1 + plain.lambda_min) / 2).epsilon(1e-6));
    CHECK(lazy.lambda_min >= -1e-6);
  }
}

TEST_CASE("the exponential graph has ρ = 1 − 2/(1 + ⌈log2 n⌉) for even n") {
  // Ying et al. 2021, arXiv:2110.13363, Proposition 1.
  for (const int nodes : {2, 4, 6, 8, 10, 16, 30, 32, 64, 100, 258, 1000, 1024}) {
    CAPTURE(nodes);
    const auto topology = make_topology("exponential", nodes);
    CHECK(spectrum(*topology).rho ==
          Approx(1 - 2 / (1 + std::ceil(std::log2(nodes)))).epsilon(1e-6).scale(1));
  }
  // For odd n the norm is below that.
  CHECK(spectrum(*make_topology("exponential", 9)).rho < 1 - 2.0 / 5);
}

TEST_CASE("one peer a round averages exactly after a period when n is a power of two") {
  for (const int nodes : {2, 4, 8, 32, 512}) {
    CAPTURE(nodes);
    const Spectrum figures = spectrum(*make_topology("one-peer-exponential", nodes));
    CHECK(std::abs(figures.rho) < 1e-6);
    CHECK(figures.mu == Approx(1).epsilon(1e-6));
  }
  CHECK(spectrum(*make_topology("one-peer-exponential", 6)).rho > 0.01);
  CHECK(spectrum(*make_topology("one-peer-exponential", 600)).rho > 0.01);
}

TEST_CASE("what does not connect does not mix") {
  const Topology two_pairs("pairs", 4, {{{0, 1, 0.5}, {1, 0, 0.5}, {2, 3, 0.5}, {3, 2, 0.5}}});
  CHECK_FALSE(properties(two_pairs).connected);
  const Spectrum figures = spectrum(two_pairs);
  CHECK(figures.rho == Approx(1));
  CHECK(figures.spectral_gap == 0);
  CHECK(figures.dcd_alpha_limit == 0);
  // An even ring without self-weights swaps for ever.
  const Topology swap("swap", 2, {{{0, 1, 1.0}, {1, 0, 1.0}}});
  CHECK(spectrum(swap).rho == Approx(1));
  CHECK(spectrum(swap).lambda_min == Approx(-1));
}

}  // namespace sotto::test::spectrum_test
