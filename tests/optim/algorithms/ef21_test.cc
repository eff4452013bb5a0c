// EF21: descent on compressed differences of gradients.
#include <sotto/optim/algorithms/ef21.h>

#include <cmath>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "optim/cluster.h"
#include "optim/uneven.h"

namespace sotto::test::ef21_test {

namespace {

constexpr std::size_t kNodes = 6;
constexpr std::size_t kDimension = 50;

ClusterOptions options_for(std::string compressor, double rate = 0.03) {
  return {.algorithm = "ef21",
          .compressor = std::move(compressor),
          .nodes = kNodes,
          .dimension = kDimension,
          .step = {.learning_rate = rate}};
}

/// y ← y + scale × C(x)
void add_compressed(Compressor& compressor, std::span<const float> x, float scale,
                    std::span<float> y) {
  std::vector<std::byte> bytes(compressor.max_bytes(x.size()));
  const std::size_t used = compressor.encode(x, {}, bytes);
  REQUIRE(compressor.decode_add(std::span(bytes).first(used), scale, y).ok());
}

}  // namespace

TEST_CASE("without compression EF21 is gradient descent") {
  Cluster cluster(options_for("none", 0.1));
  const Quadratic task(kNodes, kDimension, 5);
  auto x = cluster.mean();
  for (int t = 0; t < 200; ++t) {
    REQUIRE(cluster.driver.run(1, task).ok());
    task.descend(0.1, x);
    for (std::size_t k = 0; k < kDimension; ++k) {
      REQUIRE(std::fabs(static_cast<double>(cluster.x[3][k]) - x[k]) < 1e-5);
    }
  }
}

TEST_CASE("EF21 descends linearly on unlike quadratics, where top-k without feedback stalls") {
  const std::string compressor = "topk:0.1";
  const Uneven task(kNodes, kDimension, 7);
  Cluster cluster(options_for(compressor));
  double last = task.excess(cluster.x[0]);
  for (int stage = 0; stage < 4; ++stage) {
    REQUIRE(cluster.driver.run(150, task).ok());
    const double now = task.excess(cluster.x[0]);
    CAPTURE(stage);
    CHECK(now < last / 20);
    last = now;
  }
  CHECK(last < 1e-7);

  std::vector<float> x = Cluster(options_for(compressor)).x[0];
  const auto top_k = make_compressor(compressor, ContractKind::contraction);
  std::vector<float> g(kDimension);
  for (int t = 0; t < 600; ++t) {
    std::vector<float> step(kDimension);
    for (std::size_t i = 0; i < kNodes; ++i) {
      task(static_cast<Rank>(i), 0, x, g);
      add_compressed(*top_k, g, 1.0F / kNodes, step);
    }
    for (std::size_t k = 0; k < kDimension; ++k) {
      x[k] -= 0.03F * step[k];
    }
  }
  CHECK(task.excess(x) > 1e-2);
}

TEST_CASE("estimates: the first is C of the gradient, and the mean of all is everywhere the same") {
  for (const char* compressor : {"topk:0.1", "sign", "quant:4"}) {
    CAPTURE(compressor);
    auto options = options_for(compressor);
    options.step.momentum = 0.5;
    Cluster cluster(options);
    const Quadratic task(kNodes, kDimension, 5, 0.3);
    std::vector<float> first(kDimension);
    if (std::string(compressor) != "quant:4") {  // whose rounding is keyed by the node
      std::vector<float> g(kDimension);
      task(2, 0, cluster.x[2], g);
      add_compressed(*make_compressor(compressor, ContractKind::contraction), g, 1, first);
      REQUIRE(cluster.driver.run(1, task).ok());
      CHECK(same_bits(cluster.node<Ef21>(2).estimate(), first));
    }
    for (int t = 0; t < 100; ++t) {
      REQUIRE(cluster.driver.run(1, task).ok());
      std::vector<double> mean(kDimension);
      for (std::size_t i = 0; i < kNodes; ++i) {
        const auto& node = cluster.node<Ef21>(i);
        CHECK(same_bits(node.parameters(), cluster.x[0]));
        CHECK(same_bits(node.mean_estimate(), cluster.node<Ef21>(0).mean_estimate()));
        for (std::size_t k = 0; k < kDimension; ++k) {
          mean[k] += static_cast<double>(node.estimate()[k]) / kNodes;
        }
      }
      for (std::size_t k = 0; k < kDimension; ++k) {
        const double g = static_cast<double>(cluster.node<Ef21>(0).mean_estimate()[k]);
        REQUIRE(std::fabs(g - mean[k]) < 1e-5);
      }
    }
  }
}

TEST_CASE("EF21-SGDM: momentum=1 is EF21 to the bit, and without compression it is averaged SGD") {
  const Quadratic task(kNodes, kDimension, 5, 0.3);
  auto options = options_for("topk:0.1");
  Cluster plain(options);
  options.algorithm = "ef21:momentum=1";
  Cluster one(options);
  REQUIRE(plain.driver.run(60, task).ok());
  REQUIRE(one.driver.run(60, task).ok());
  CHECK(plain.x == one.x);
  CHECK(one.node<Ef21>(0).average().empty());

  constexpr double kMomentum = 0.25;
  options = options_for("none", 0.1);
  options.algorithm = "ef21:momentum=0.25";
  Cluster cluster(options);
  std::vector<double> x = cluster.mean();
  std::vector<double> v(kDimension);
  std::vector<float> at(kDimension);
  std::vector<float> g(kDimension);
  for (Round t = 0; t < 150; ++t) {
    std::vector<double> mean(kDimension);
    for (std::size_t i = 0; i < kNodes; ++i) {
      for (std::size_t k = 0; k < kDimension; ++k) {
        at[k] = static_cast<float>(x[k]);
      }
      task(static_cast<Rank>(i), t, at, g);
      for (std::size_t k = 0; k < kDimension; ++k) {
        mean[k] += static_cast<double>(g[k]) / kNodes;
      }
    }
    for (std::size_t k = 0; k < kDimension; ++k) {
      v[k] = t == 0 ? mean[k] : (1 - kMomentum) * v[k] + kMomentum * mean[k];
      x[k] -= 0.1 * v[k];
    }
    REQUIRE(cluster.driver.run(1, task).ok());
    for (std::size_t k = 0; k < kDimension; ++k) {
      REQUIRE(std::fabs(static_cast<double>(cluster.x[3][k]) - x[k]) < 1e-5);
    }
  }
}

TEST_CASE("EF21-SGDM descends linearly without noise, and as near as SGD where there is much") {
  const std::uint64_t seed =
      RandomStream({.seed = 2305'15155, .purpose = Purpose::test}).next_u64() >> 40U;
  CAPTURE(seed);
  const auto run = [&](const std::string& algorithm, const std::string& compressor, double noise) {
    auto options = options_for(compressor);
    options.algorithm = algorithm;
    options.seed = seed;
    Cluster cluster(options);
    const Quadratic task(kNodes, kDimension, seed, noise);
    REQUIRE(cluster.driver.run(1500, task).ok());
    double excess = 0;  // over the last rounds, as it stays where it is
    for (int t = 0; t < 500; ++t) {
      REQUIRE(cluster.driver.run(1, task).ok());
      excess += task.excess(cluster.mean()) / 500;
    }
    return excess;
  };
  CHECK(run("ef21:momentum=0.1", "topk:0.1", 0) < 1.5 * run("ef21", "none", 0));
  const double without = run("ef21", "topk:0.1", 2);
  const double with = run("ef21:momentum=0.1", "topk:0.1", 2);
  const double exact = run("ef21", "none", 2);
  CAPTURE(without);
  CAPTURE(with);
  CAPTURE(exact);
  CHECK(with < without / 2);
  CHECK(with < 2 * exact);
}

TEST_CASE("EF21-SGDM, saved in mid-run and loaded, continues to the bit") {
  const Quadratic task(kNodes, kDimension, 5, 0.3);
  auto options = options_for("topk:0.1");
  options.algorithm = "ef21:momentum=0.1";
  Cluster whole(options);
  REQUIRE(whole.driver.run(20, task).ok());
  Cluster resumed(options);
  resumed.x = whole.x;
  for (std::size_t i = 0; i < kNodes; ++i) {
    ByteBuffer saved;
    whole.driver.node(i).save(saved);
    ByteReader in(saved.bytes());
    REQUIRE(resumed.driver.node(i).load(in).ok());
    CHECK(in.finished());
  }
  REQUIRE(whole.driver.run(20, task).ok());
  REQUIRE(resumed.driver.run(20, task).ok());
  CHECK(whole.x == resumed.x);

  options.algorithm = "ef21";
  Cluster without(options);
  ByteBuffer saved;
  whole.driver.node(0).save(saved);
  ByteReader in(saved.bytes());
  CHECK(without.driver.node(0).load(in).fault() == Fault::malformed);
}

TEST_CASE("a round of EF21 sends a compressed difference to every other node") {
  Cluster cluster(options_for("sign"));
  REQUIRE(cluster.driver.run(7, Quadratic(kNodes, kDimension, 5)).ok());
  const auto sign = make_compressor("sign", ContractKind::contraction);
  CHECK(cluster.driver.traffic().size() == kNodes * (kNodes - 1));
  CHECK(cluster.driver.bytes_sent(4) == 7 * (kNodes - 1) * (64 + sign->max_bytes(kDimension)));
}

}  // namespace sotto::test::ef21_test
