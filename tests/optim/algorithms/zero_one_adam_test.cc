// 0/1 Adam: its schedules of variances and exchanges, and the rule between them.
#include <sotto/optim/algorithms/zero_one_adam.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "optim/cluster.h"

namespace sotto::test::zero_one_adam_test {

namespace {

constexpr int kNodes = 3;
constexpr std::size_t kDimension = 29;

/// A gradient of every node, round and parameter that does not depend on x.
float gradient_at(Rank rank, Round round, std::size_t k) {
  RandomStream stream({.seed = 9,
                       .rank = rank,
                       .round = round,
                       .purpose = Purpose::test,
                       .bucket = static_cast<std::uint32_t>(k)});
  return static_cast<float>(0.5 * std::sin(static_cast<double>(k)) + stream.normal());
}

void noisy(Rank rank, Round round, std::span<const float> /*x*/, std::span<float> g) {
  for (std::size_t k = 0; k < g.size(); ++k) {
    g[k] = gradient_at(rank, round, k);
  }
}

/// 0/1 Adam in double precision without compression, straight from the header.
class Script {
 public:
  Script(Round freeze_step, Round limit) : freeze_step_(freeze_step), limit_(limit) {}

  void round(Round t, double rate) {
    std::vector<double> mean(kDimension);
    for (std::size_t k = 0; k < kDimension; ++k) {
      for (int i = 0; i < kNodes; ++i) {
        mean[k] += static_cast<double>(gradient_at(i, t, k)) / kNodes;
      }
    }
    const bool full = t == next_ && t < freeze_step_;
    if (full) {
      next_ += Round{1} << (variances_ / 16);
      ++variances_;
      for (std::size_t k = 0; k < kDimension; ++k) {
        v_[k] = 0.999 * v_[k] + 0.001 * mean[k] * mean[k];
      }
    }
    const double gamma = rate / (1 - std::pow(0.9, static_cast<double>(t + 1)));
    rates_ += gamma;
    ++local_;
    const bool exchange =
        local_ >= std::min(limit_, Round{1} << std::min<Round>(t / freeze_step_, 60));
    const double correction = 1 - std::pow(0.999, static_cast<double>(variances_));
    for (std::size_t k = 0; k < kDimension; ++k) {
      double average = 0;
      for (auto& node : nodes_) {
        const auto rank = static_cast<Rank>(&node - nodes_.data());
        const double g = full ? mean[k] : static_cast<double>(gradient_at(rank, t, k));
        node.m[k] = 0.9 * node.m[k] + 0.1 * g;
        node.u[k] += gamma * node.m[k];
        average += node.u[k] / kNodes;
      }
      const double root = std::sqrt(v_[k] / correction) + 1e-8;
      if (exchange) {
        common_[k] -= average / root;
      }
      for (auto& node : nodes_) {
        node.m[k] = exchange ? average / rates_ : node.m[k];
        node.u[k] = exchange ? 0 : node.u[k];
        node.x[k] = common_[k] - node.u[k] / root;
      }
    }
    if (exchange) {
      rates_ = 0;
      local_ = 0;
      ++exchanges_;
    }
  }

  double x(int node, std::size_t k) const { return nodes_[static_cast<std::size_t>(node)].x[k]; }
  Round variances() const { return variances_; }
  Round exchanges() const { return exchanges_; }

 private:
  using Vector = std::vector<double>;
  struct Node {
    Vector x = Vector(kDimension);
    Vector m = Vector(kDimension);
    Vector u = Vector(kDimension);
  };
  Round freeze_step_;
  Round limit_;
  std::vector<Node> nodes_ = std::vector<Node>(kNodes);
  Vector common_ = Vector(kDimension);
  Vector v_ = Vector(kDimension);
  double rates_ = 0;
  Round next_ = 0;
  Round local_ = 0;
  Round variances_ = 0;
  Round exchanges_ = 0;
};

ClusterOptions options(const std::string& compressor, std::optional<Round> freeze_step) {
  return {.algorithm = "zeroone-adam",
          .compressor = compressor,
          .nodes = kNodes,
          .dimension = kDimension,
          .step = {.rule = "adam", .learning_rate = 1e-3},
          .freeze_step = freeze_step,
          .initial_scale = 0};
}

}  // namespace

TEST_CASE("0/1 Adam without compression is its rule, local steps included") {
  for (const Round limit : {Round{1}, Round{4}, Round{16}}) {
    CAPTURE(limit);
    auto chosen = options("none", 40);
    chosen.algorithm += fmt::format(":limit={}", limit);
    Cluster cluster(chosen);
    Script script(40, limit);
    for (Round t = 0; t < 230; ++t) {
      REQUIRE(cluster.driver.run(1, noisy).ok());
      script.round(t, 1e-3);
      for (int i = 0; i < kNodes; ++i) {
        for (std::size_t k = 0; k < kDimension; ++k) {
          REQUIRE(std::fabs(static_cast<double>(cluster.x[static_cast<std::size_t>(i)][k]) -
                            script.x(i, k)) < 3e-6);
        }
      }
    }
    CHECK(cluster.node<ZeroOneAdam>(0).variances() == script.variances());
    CHECK(cluster.node<ZeroOneAdam>(0).exchanges() == script.exchanges());
  }
}

TEST_CASE("the variance is updated in each of 16 rounds, then every 2nd, 4th … round") {
  Cluster cluster(options("sign", std::nullopt));
  std::vector<Round> updates;
  for (Round t = 0; t < 60; ++t) {
    const Round before = cluster.node<ZeroOneAdam>(0).variances();
    REQUIRE(cluster.driver.run(1, noisy).ok());
    if (cluster.node<ZeroOneAdam>(0).variances() != before) {
      updates.push_back(t);
    }
  }
  std::vector<Round> expected;
  for (Round t = 0; t < 16; ++t) {
    expected.push_back(t);
  }
  for (Round t = 16; t < 48; t += 2) {
    expected.push_back(t);
  }
  for (Round t = 48; t < 60; t += 4) {
    expected.push_back(t);
  }
  CHECK(updates == expected);
  CHECK(cluster.node<ZeroOneAdam>(0).exchanges() == 60);
}

TEST_CASE("0/1 Adam: models are equal to the bit after an exchange, and only then") {
  auto chosen = options("sign", 5);
  chosen.algorithm += ":limit=4";
  Cluster cluster(chosen);
  Round exchanges = 0;
  for (Round t = 0; t < 60; ++t) {
    REQUIRE(cluster.driver.run(1, noisy).ok());
    const Round now = cluster.node<ZeroOneAdam>(0).exchanges();
    CHECK(same_bits(cluster.x[0], cluster.x[1]) == (now != exchanges));
    CHECK(same_bits(cluster.x[0], cluster.x[2]) == (now != exchanges));
    exchanges = now;
  }
  CHECK(exchanges < 30);
}

TEST_CASE("0/1 Adam: a new variance changes the errors' unit: they start anew") {
  Cluster cluster(options("sign", std::nullopt));
  for (Round t = 0; t < 60; ++t) {
    const Round variances = cluster.node<ZeroOneAdam>(0).variances();
    REQUIRE(cluster.driver.run(1, noisy).ok());
    const bool renewed = cluster.node<ZeroOneAdam>(0).variances() != variances;
    for (std::size_t i = 0; i < kNodes; ++i) {
      const ChunkMean& mean = cluster.node<ZeroOneAdam>(i).chunk_mean();
      const auto zero = [](float value) { return value == 0; };
      CHECK(std::all_of(mean.error().begin(), mean.error().end(), zero) == renewed);
      CHECK((!renewed || std::all_of(mean.chunk_error().begin(), mean.chunk_error().end(), zero)));
    }
  }
}

TEST_CASE("0/1 Adam: parameters whose gradient is always zero stay put, without a mask") {
  const auto sparse = [](Rank rank, Round round, std::span<const float> x, std::span<float> g) {
    noisy(rank, round, x, g);
    for (std::size_t k = 0; k < g.size(); k += 3) {
      g[k] = 0;
    }
  };
  auto chosen = options("sign", 10);
  chosen.initial_scale = 1;
  Cluster cluster(chosen);
  const auto start = cluster.x[0];
  REQUIRE(cluster.driver.run(100, sparse).ok());
  for (std::size_t k = 0; k < kDimension; ++k) {
    CHECK((cluster.x[0][k] == start[k]) == (k % 3 == 0));
  }
}

TEST_CASE("0/1 Adam with one bit and local steps reaches what Adam reaches") {
  const auto excess = [](const std::string& algorithm, std::optional<Round> freeze) {
    // Noise that outweighs the way to go: a variance that is updated rarely is of the right size.
    const Quadratic task(4, 64, 11, 2);
    Cluster cluster({.algorithm = algorithm,
                     .nodes = 4,
                     .step = {.rule = "adam", .learning_rate = 0.01},
                     .freeze_step = freeze});
    const Status status = cluster.driver.run(1500, task);
    CAPTURE(status.message());
    REQUIRE(status.ok());
    return task.excess(cluster.mean());
  };
  const double adam = excess("apmsqueeze", 1501);
  CAPTURE(adam);
  CHECK(excess("zeroone-adam", std::nullopt) < 3 * adam + 1e-3);
  CHECK(excess("zeroone-adam:limit=4", 200) < 3 * adam + 1e-3);
}

}  // namespace sotto::test::zero_one_adam_test
