// Dion: many nodes are one node with the mean gradient, and steps are orthonormal.
#include <sotto/optim/algorithms/dion.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/base/error.h>

#include "optim/cluster.h"
#include "optim/saved_state.h"

namespace sotto::test::dion_test {

namespace {

using Matrix = std::vector<double>;

constexpr std::size_t kColumns = 3;
constexpr double kRate = 0.002;

std::uint64_t draw_seed(std::uint32_t number) {
  RandomStream stream({.seed = 2504'05295, .round = number, .purpose = Purpose::test});
  return stream.next_u64() >> 40U;
}

ParameterLayout network() {
  ParameterLayout layout;
  append_block(layout, "tall.weight", {20, 12});
  append_block(layout, "tall.bias", {20});
  append_block(layout, "wide.weight", {9, 30});
  append_block(layout, "small", {3, 2});
  return layout;
}

ClusterOptions options_for(std::size_t nodes, std::uint64_t seed,
                           const std::string& algorithm = "dion") {
  return {.algorithm = algorithm,
          .compressor = algorithm == "allreduce" ? "" : "lowrank:3",
          .nodes = nodes,
          .dimension = dimension_of(network()),
          .step = {.rule = "adamw", .learning_rate = kRate},
          .seed = seed,
          .layout = network()};
}

/// Gradients that do not depend on the model: a part that stays, and noise.
void gradient_of(std::uint64_t seed, Rank rank, Round round, std::span<float> g) {
  RandomStream stream({.seed = seed, .rank = rank, .round = round, .purpose = Purpose::test});
  RandomStream steady({.seed = seed, .rank = rank, .purpose = Purpose::shuffle});
  for (float& value : g) {
    value = static_cast<float>(stream.normal() + steady.normal());
  }
}

GradientFunction gradients(std::uint64_t seed) {
  return [seed](Rank rank, Round round, std::span<const float>, std::span<float> g) {
    gradient_of(seed, rank, round, g);
  };
}

/// Their mean over so many nodes, for one.
GradientFunction mean_gradients(std::uint64_t seed, int nodes) {
  return [seed, nodes](Rank, Round round, std::span<const float>, std::span<float> g) {
    std::vector<float> one(g.size());
    Matrix sum(g.size());
    for (int rank = 0; rank < nodes; ++rank) {
      gradient_of(seed, rank, round, one);
      for (std::size_t k = 0; k < g.size(); ++k) {
        sum[k] += static_cast<double>(one[k]);
      }
    }
    for (std::size_t k = 0; k < g.size(); ++k) {
      g[k] = static_cast<float>(sum[k] / nodes);
    }
  };
}

/// The step that one round makes of a tensor.
Matrix step_of(const ParameterBlock& block, const std::vector<float>& before,
               const std::vector<float>& after) {
  Matrix step;
  for (std::size_t k = block.offset; k < block.offset + block.size; ++k) {
    step.push_back(static_cast<double>(before[k]) - static_cast<double>(after[k]));
  }
  return step;
}

double squared_length(const Matrix& x) {
  double sum = 0;
  for (const double value : x) {
    sum += value * value;
  }
  return sum;
}

/// ‖D Dᵀ D − D‖ for the shorter side's form: 0 where all singular values are 1 or 0.
double projection_error(std::size_t rows, std::size_t columns, const Matrix& d) {
  Matrix gram(rows * rows);
  for (std::size_t i = 0; i < rows; ++i) {
    for (std::size_t j = 0; j < rows; ++j) {
      for (std::size_t k = 0; k < columns; ++k) {
        gram[i * rows + j] += d[i * columns + k] * d[j * columns + k];
      }
    }
  }
  double error = 0;
  for (std::size_t i = 0; i < rows; ++i) {
    for (std::size_t k = 0; k < columns; ++k) {
      double sum = 0;
      for (std::size_t j = 0; j < rows; ++j) {
        sum += gram[i * rows + j] * d[j * columns + k];
      }
      error += std::pow(sum - d[i * columns + k], 2);
    }
  }
  return std::sqrt(error);
}

}  // namespace

TEST_CASE("Dion: many nodes are one node with the mean gradient, and equal to the bit") {
  std::uint32_t number = 0;
  for (const std::size_t nodes : {2U, 3U, 8U}) {
    const std::uint64_t seed = draw_seed(number++);
    CAPTURE(nodes);
    CAPTURE(seed);
    Cluster many(options_for(nodes, seed));
    Cluster one(options_for(1, seed));
    REQUIRE(many.driver.run(40, gradients(seed)).ok());
    REQUIRE(one.driver.run(40, mean_gradients(seed, static_cast<int>(nodes))).ok());
    CHECK(largest_gap(many.x[0], one.x[0]) < 2e-5);
    for (std::size_t i = 1; i < nodes; ++i) {
      CHECK(same_bits(many.x[i], many.x[0]));
    }
    // The mean of the momenta, too.
    const ParameterLayout layout = network();
    for (const std::size_t matrix : {0U, 2U}) {
      for (std::size_t k = layout[matrix].offset; k < layout[matrix].offset + layout[matrix].size;
           ++k) {
        double sum = 0;
        for (std::size_t i = 0; i < nodes; ++i) {
          sum += static_cast<double>(many.node<Dion>(i).momentum()[k]);
        }
        CHECK(std::fabs(sum / static_cast<double>(nodes) -
                        static_cast<double>(one.node<Dion>(0).momentum()[k])) < 2e-4);
      }
    }
  }
}

TEST_CASE("Dion's steps have length γ √(r/c) √K, whatever the gradients' length") {
  const std::uint64_t seed = draw_seed(20);
  CAPTURE(seed);
  const ParameterLayout layout = network();
  for (const float size : {1e-3F, 1.0F, 1e4F}) {
    CAPTURE(size);
    Cluster cluster(options_for(4, seed));
    const auto scaled = [&](Rank rank, Round round, std::span<const float>, std::span<float> g) {
      gradient_of(seed, rank, round, g);
      host_ops().scale(size, g);
    };
    for (Round t = 0; t < 30; ++t) {
      const auto before = cluster.x[0];
      REQUIRE(cluster.driver.run(1, scaled).ok());
      for (const std::size_t matrix : {0U, 2U}) {
        const double rows = static_cast<double>(layout[matrix].shape[0]);
        const double columns = static_cast<double>(layout[matrix].shape[1]);
        const double expected = 10 * kRate * 10 * kRate * rows / columns * kColumns;
        const Matrix step = step_of(layout[matrix], before, cluster.x[0]);
        CHECK(squared_length(step) == doctest::Approx(expected).epsilon(1e-4));
      }
    }
  }
}

TEST_CASE("Dion's step along a matrix that stays comes to be a projection of it") {
  // With M = n g and S converged, P and Q are singular vectors of g.
  const std::uint64_t seed = draw_seed(30);
  CAPTURE(seed);
  const ParameterLayout layout = network();
  Cluster cluster(options_for(2, seed, "dion:scale=1"));
  const auto steady = [&](Rank, Round, std::span<const float>, std::span<float> g) {
    std::ranges::fill(g, 0.0F);
    for (const std::size_t matrix : {0U, 2U}) {  // three singular values: 4, 2 and 1
      for (std::size_t l = 0; l < kColumns; ++l) {
        g[layout[matrix].offset + l * layout[matrix].shape[1] + l] = static_cast<float>(4 >> l);
      }
    }
  };
  REQUIRE(cluster.driver.run(40, steady).ok());
  const auto before = cluster.x[0];
  REQUIRE(cluster.driver.run(1, steady).ok());
  for (const std::size_t matrix : {0U, 2U}) {
    const std::size_t rows = layout[matrix].shape[0];
    const std::size_t columns = layout[matrix].shape[1];
    Matrix step = step_of(layout[matrix], before, cluster.x[0]);
    for (double& value : step) {
      value /= kRate * std::sqrt(static_cast<double>(rows) / static_cast<double>(columns));
    }
    CHECK(projection_error(rows, columns, step) < 1e-3);
    for (std::size_t l = 0; l < kColumns; ++l) {
      CHECK(step[l * columns + l] == doctest::Approx(1).epsilon(1e-3));
    }
    // What is subtracted keeps M at 1/(1 − μ) of the gradient.
    const double moment =
        static_cast<double>(cluster.node<Dion>(0).momentum()[layout[matrix].offset]);
    CHECK(moment < 4 / 0.05 + 4);
    CHECK(moment > 4 / 0.05 * 0.8);
  }
}

TEST_CASE("Dion steps along what is no matrix as AdamW does with the mean gradient") {
  const std::uint64_t seed = draw_seed(40);
  CAPTURE(seed);
  auto options = options_for(3, seed);
  options.step.weight_decay = 0.1;
  Cluster dion(options);
  options = options_for(3, seed, "allreduce");
  options.step.weight_decay = 0.1;
  Cluster adamw(options);
  REQUIRE(dion.driver.run(30, gradients(seed)).ok());
  REQUIRE(adamw.driver.run(30, gradients(seed)).ok());
  const ParameterLayout layout = network();
  for (const std::size_t tensor : {1U, 3U}) {
    CHECK(largest_gap(layout[tensor].of(std::span<const float>(dion.x[0])),
                      layout[tensor].of(std::span<const float>(adamw.x[0]))) < 1e-6);
  }
}

TEST_CASE("Dion refuses what it cannot do") {
  const auto refusal = [](const ClusterOptions& options) -> std::string {
    try {
      Cluster cluster(options);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  auto options = options_for(2, 1);
  options.step.clip_norm = 1;
  CHECK(refusal(options).find("clip_norm: dion forms no mean") == 0);
  options = options_for(2, 1);
  options.compressor = "lowrank:2,steps=2";
  CHECK(refusal(options).find("dion makes one step of the iteration") != std::string::npos);
  options.compressor = "sign";
  CHECK(refusal(options).find("dion takes lowrank only") != std::string::npos);
  CHECK(refusal(options_for(2, 1, "dion:momentum=1")).find("momentum") != std::string::npos);
}

}  // namespace sotto::test::dion_test
