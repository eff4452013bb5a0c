// BEER: the mean follows plain SGD whatever is compressed, and strong compression leaves no floor.
#include <sotto/optim/algorithms/beer.h>

#include <cmath>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "optim/cluster.h"
#include "optim/uneven.h"

namespace sotto::test::beer_test {

TEST_CASE("BEER has no floor under strong compression, where CHOCO has one") {
  const Uneven task(8, 16, 7);
  const auto floor_of = [&](const char* algorithm, const char* compressor) {
    Cluster cluster({.algorithm = algorithm,
                     .compressor = compressor,
                     .dimension = 16,
                     .step = {.learning_rate = 0.05}});
    const Status status = cluster.driver.run(6000, task);
    CAPTURE(status.message());
    REQUIRE(status.ok());
    return task.worst_excess(cluster.x);
  };
  for (const std::string compressor :
       {"none", "quant:4,rounding=nearest", "sign", "topk:0.2", "topk:0.2,values=2"}) {
    CAPTURE(compressor);
    const double beer = floor_of("beer", compressor.c_str());
    CAPTURE(beer);
    CHECK(beer < 1e-7);
    CHECK(floor_of("choco", compressor.c_str()) > 1e-3);
  }
}

TEST_CASE("BEER: the mean model follows plain SGD, and the shifts cancel, for every compressor") {
  // But for rounding: 300 rounds of 2^-24 of the sent values, gradients and models of size 3.
  constexpr std::size_t kDimension = 130;
  constexpr double kRate = 0.02;
  for (const CompressorInfo& family : compressors()) {
    const auto compressor = make_compressor(family.example, ContractKind::contraction);
    if (!compressor->contract(kDimension).meets(ContractKind::contraction)) {
      continue;
    }
    CAPTURE(family.name);
    Cluster cluster({.algorithm = "beer",
                     .compressor = compressor->spec(),
                     .dimension = kDimension,
                     .step = {.learning_rate = kRate}});
    const Quadratic task(8, kDimension, 3);
    auto expected = cluster.mean();
    const Status status = cluster.driver.run(300, task);
    CAPTURE(status.message());
    REQUIRE(status.ok());
    for (int t = 0; t < 300; ++t) {
      task.descend(kRate, expected);
    }
    const auto mean = cluster.mean();
    for (std::size_t k = 0; k < kDimension; ++k) {
      CHECK(std::fabs(mean[k] - expected[k]) < 2e-5);
      double shift = 0;
      for (std::size_t rank = 0; rank < 8; ++rank) {
        shift += static_cast<double>(cluster.node<Beer>(rank).shift()[k]) / 8;
      }
      CHECK(std::fabs(shift) < 2e-5);
    }
  }
}

TEST_CASE("BEER without compression is Algorithm 1 of its paper, from G = H = 0") {
  constexpr std::size_t kNodes = 5;
  constexpr double kRate = 0.05;
  constexpr double kEta = 0.4;
  const Uneven task(kNodes, 1, 3);
  Cluster cluster({.algorithm = "beer:eta=0.4",
                   .compressor = "none",
                   .nodes = kNodes,
                   .dimension = 1,
                   .step = {.learning_rate = kRate}});
  using Row = std::vector<double>;
  const auto gradient_of = [&](const Row& x) {
    Row g(kNodes);
    for (std::size_t i = 0; i < kNodes; ++i) {
      const float at = static_cast<float>(x[i]);
      float value = 0;
      task(static_cast<Rank>(i), 0, std::span(&at, 1), std::span(&value, 1));
      g[i] = static_cast<double>(value);
    }
    return g;
  };
  const auto pull = [](const Row& h, std::size_t i) {  // (W − I) h on a ring with weights ⅓
    return (h[(i + 1) % kNodes] + h[(i + kNodes - 1) % kNodes] - 2 * h[i]) / 3;
  };
  Row x(kNodes, static_cast<double>(cluster.x[0][0]));
  Row h(kNodes);
  Row g(kNodes);
  Row old = gradient_of(x);
  Row v = old;
  for (int t = 0; t < 40; ++t) {
    REQUIRE(cluster.driver.run(1, task).ok());
    Row next = x;
    for (std::size_t i = 0; i < kNodes; ++i) {
      next[i] += kEta * pull(h, i) - kRate * v[i];
    }
    x = next;
    h = x;
    const Row fresh = gradient_of(x);
    Row tracked = v;
    for (std::size_t i = 0; i < kNodes; ++i) {
      tracked[i] += kEta * pull(g, i) + fresh[i] - old[i];
    }
    v = tracked;
    g = v;
    old = fresh;
    for (std::size_t i = 0; i < kNodes; ++i) {
      REQUIRE(std::fabs(static_cast<double>(cluster.x[i][0]) - x[i]) < 2e-6);
    }
  }
}

TEST_CASE("BEER runs at every number of nodes and parameters") {
  for (std::size_t nodes = 1; nodes <= 17; ++nodes) {
    for (const std::size_t dimension : {0U, 1U, 127U, 5003U}) {
      CAPTURE(nodes);
      CAPTURE(dimension);
      Cluster cluster({.algorithm = "beer", .nodes = nodes, .dimension = dimension});
      const Status status = cluster.driver.run(3, Quadratic(nodes, dimension, 5));
      CAPTURE(status.message());
      REQUIRE(status.ok());
    }
  }
}

}  // namespace sotto::test::beer_test
