// Nodes that count by their weights, as FedAvg has them.
#include <cmath>
#include <cstdint>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/base/error.h>
#include <sotto/trainers/optimizer.h>

#include "support/seed.h"
#include "trainers/nodes.h"

namespace sotto::test::weights_test {

namespace {

constexpr int kNodes = 4;
constexpr std::size_t kDimension = 20;

using Weights = std::vector<double>;

/// Convex, with another minimum at each node.
void pull(Rank rank, Round, std::span<const float> x, std::span<float> gradient) {
  for (std::size_t k = 0; k < x.size(); ++k) {
    gradient[k] = x[k] - static_cast<float>(rank + 1) - 0.25F * static_cast<float>(k % 3);
  }
}

struct Trained {
  Status status;
  std::vector<float> x = std::vector<float>(kDimension);
};

std::vector<Trained> train_all(OptimizerOptions options, const Weights& weights, Round rounds) {
  options.store = make_memory_store();
  std::vector<Trained> nodes(kNodes);
  (void)play(kNodes, [&](Rank rank) -> Status {
    const auto node = static_cast<std::size_t>(rank);
    auto own = options;
    if (!weights.empty() && weights[node] > 0) {
      own.weight = weights[node];
    }
    nodes[node].status = train(own, rank, rounds, pull, nodes[node].x);
    return {};
  });
  return nodes;
}

bool averages_gradients(const AlgorithmInfo& info) {
  auto options = options_for(kNodes, make_memory_store());
  options.rank = 0;
  options.lazy = info.eigenvalues_above > -1;
  choose(options, info);
  options.weight = 1;
  std::vector<float> x(kDimension);
  try {
    const Optimizer optimizer(options, x);
    return true;
  } catch (const Error& error) {
    CHECK(std::string(error.what()).find("average over all nodes") != std::string::npos);
    return false;
  }
}

Weights draw_weights(std::mt19937_64& random) {
  Weights weights;
  for (int node = 0; node < kNodes; ++node) {
    weights.push_back(static_cast<double>(1 + random() % 5000));
  }
  return weights;
}

std::mt19937_64 drawn() {
  const std::uint64_t seed = test::drawn_seed();
  MESSAGE("seed ", seed);
  return std::mt19937_64(seed);
}

/// The place where Σ_i w_i (x − rank_i − 1 − …) is 0.
double weighted_minimum(const Weights& weights, std::size_t k) {
  double sum = 0;
  for (std::size_t node = 0; node < kNodes; ++node) {
    sum += weights[node] * static_cast<double>(node + 1);
  }
  return sum / std::accumulate(weights.begin(), weights.end(), 0.0) +
         0.25 * static_cast<double>(k % 3);
}

}  // namespace

TEST_CASE("equal weights give the bits of none, with every algorithm that takes them") {
  int taken = 0;
  for (const AlgorithmInfo& info : algorithms()) {
    if (!averages_gradients(info)) {
      continue;
    }
    ++taken;
    CAPTURE(info.name);
    auto options = options_for(kNodes, nullptr);
    options.lazy = info.eigenvalues_above > -1;
    choose(options, info);
    const auto without = train_all(options, {}, 12);
    const auto with = train_all(options, Weights(kNodes, 317), 12);
    for (std::size_t node = 0; node < kNodes; ++node) {
      CHECK_MESSAGE(with[node].status.ok(), with[node].status.message());
      CHECK(with[node].x == without[node].x);
    }
  }
  CHECK(taken >= 5);
}

TEST_CASE("all-reduce steps with the weighted mean of all gradients") {
  auto random = drawn();
  const Weights weights = draw_weights(random);
  auto options = options_for(kNodes, nullptr);
  options.algorithm = "allreduce";
  const auto one = train_all(options, weights, 1);
  const auto many = train_all(options, weights, 600);
  for (std::size_t k = 0; k < kDimension; ++k) {
    const double minimum = weighted_minimum(weights, k);
    // From 0, where the mean gradient is less the minimum.
    CHECK(one[0].x[k] == doctest::Approx(0.05 * minimum).epsilon(1e-5));
    CHECK(many[3].x[k] == doctest::Approx(minimum).epsilon(1e-4));
  }
}

TEST_CASE("FedAvg: what nodes moved in local steps is averaged by their weights") {
  auto random = drawn();
  const Weights weights = draw_weights(random);
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  for (const Round interval : {Round{2}, Round{5}}) {
    CAPTURE(interval);
    auto options = options_for(kNodes, nullptr);
    options.algorithm = "allreduce";
    options.communication_interval = interval;
    const auto trained = train_all(options, weights, 4 * interval);
    std::vector<double> x(kDimension);
    for (int exchange = 0; exchange < 4; ++exchange) {
      std::vector<double> mean(kDimension);
      for (std::size_t node = 0; node < kNodes; ++node) {
        for (std::size_t k = 0; k < kDimension; ++k) {
          const double own = static_cast<double>(node + 1) + 0.25 * static_cast<double>(k % 3);
          double at = x[k];
          for (Round step = 0; step < interval; ++step) {
            at -= 0.05 * (at - own);
          }
          mean[k] += weights[node] / sum * at;
        }
      }
      x = mean;
    }
    for (std::size_t node = 0; node < kNodes; ++node) {
      CHECK_MESSAGE(trained[node].status.ok(), trained[node].status.message());
      for (std::size_t k = 0; k < kDimension; ++k) {
        CHECK(trained[node].x[k] == doctest::Approx(x[k]).epsilon(1e-4));
      }
    }
  }
}

TEST_CASE("weights of extreme sizes stay finite, and what is no weight is refused") {
  auto options = options_for(kNodes, nullptr);
  options.algorithm = "allreduce";
  for (const Weights& weights : {Weights{1e15, 1e15, 1e15, 1e15}, Weights{1e-12, 1e15, 1, 1},
                                 Weights{1e-12, 1e-12, 1e-12, 1e-12}}) {
    for (const Trained& node : train_all(options, weights, 3)) {
      CHECK_MESSAGE(node.status.ok(), node.status.message());
      CHECK(std::isfinite(node.x[0]));
    }
  }
  options.store = make_memory_store();
  options.rank = 0;
  std::vector<float> x(kDimension);
  for (const double wrong : {0.0, -1.0, 9e-13, 1.1e15, std::numeric_limits<double>::infinity(),
                             std::numeric_limits<double>::quiet_NaN()}) {
    options.weight = wrong;
    CHECK_THROWS_AS(Optimizer(options, x), Error);
  }
}

TEST_CASE("nodes with and without weights are told so when they meet") {
  auto options = options_for(kNodes, nullptr);
  options.algorithm = "allreduce";
  for (const Trained& node : train_all(options, {1, 1, 0, 1}, 3)) {
    CAPTURE(node.status.message());
    CHECK(node.status.fault() == Fault::unexpected);
    CHECK(node.status.message().find("weighted") != std::string::npos);
  }
}

}  // namespace sotto::test::weights_test
