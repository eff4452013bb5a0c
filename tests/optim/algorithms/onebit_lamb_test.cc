// 1-bit LAMB: LAMB before the freeze, its ratios and the variance of the day after it.
#include <sotto/optim/algorithms/onebit_lamb.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "optim/cluster.h"

namespace sotto::test::onebit_lamb_test {

namespace {

constexpr std::size_t kNodes = 3;

ParameterLayout two_matrices() {
  ParameterLayout layout;
  append_block(layout, "a", {4, 5});
  append_block(layout, "b", {5});
  append_block(layout, "c", {3, 5});
  return layout;
}

/// Gradients whose size differs by tensor and changes in time.
float gradient_at(Rank rank, Round round, std::size_t k) {
  RandomStream stream({.seed = 12,
                       .rank = rank,
                       .round = round,
                       .purpose = Purpose::test,
                       .bucket = static_cast<std::uint32_t>(k)});
  const double size = (k < 20 ? 1 : 0.01) * (round < 60 ? 1 : 0.3);
  return static_cast<float>(size * (0.5 * std::sin(static_cast<double>(k)) + stream.normal()));
}

void noisy(Rank rank, Round round, std::span<const float> /*x*/, std::span<float> g) {
  for (std::size_t k = 0; k < g.size(); ++k) {
    g[k] = gradient_at(rank, round, k);
  }
}

ClusterOptions options(const std::string& compressor) {
  return {.algorithm = "onebit-lamb",
          .compressor = compressor,
          .nodes = kNodes,
          .dimension = dimension_of(two_matrices()),
          .step = {.rule = "lamb", .learning_rate = 1e-3, .weight_decay = 0.01},
          .freeze_step = 20};
}

/// A cluster whose nodes know the tensors.
struct LayoutCluster {
  explicit LayoutCluster(const ClusterOptions& chosen)
      : x(chosen.nodes, std::vector<float>(chosen.dimension)) {
    for (std::size_t rank = 0; rank < chosen.nodes; ++rank) {
      RandomStream stream({.seed = 1, .purpose = Purpose::initialize});
      for (float& value : x[rank]) {
        value = static_cast<float>(stream.normal());
      }
      auto setup = node_setup(chosen, rank, x[rank], cluster_topology(chosen));
      setup.layout = two_matrices();
      driver.add(make_algorithm(spec_of(chosen), std::move(setup)));
    }
  }
  const OneBitLamb& node(std::size_t rank) const {
    return dynamic_cast<const OneBitLamb&>(driver.node(rank));
  }

  LockstepDriver driver{Delivery::eager};
  std::vector<std::vector<float>> x;
};

}  // namespace

TEST_CASE("1-bit LAMB without compression is its paper's box in double precision") {
  LayoutCluster cluster(options("none"));
  const ParameterLayout layout = two_matrices();
  const std::size_t d = dimension_of(layout);
  std::vector<double> x(cluster.x[0].begin(), cluster.x[0].end());
  std::vector<double> m(d);
  std::vector<double> v(d);
  std::vector<double> fresh(d);
  std::vector<double> ratio(layout.size());
  std::vector<double> change(layout.size(), 1);
  double farthest = 0;
  for (int t = 1; t <= 120; ++t) {
    const bool plain = t <= 20;
    std::vector<double> u(d);
    const double correction = 1 - std::pow(0.999, std::min(t, 20));
    const double fresh_correction = 1 - std::pow(0.999, t);
    for (std::size_t k = 0; k < d; ++k) {
      double g = 0;
      for (std::size_t i = 0; i < kNodes; ++i) {
        g += static_cast<double>(gradient_at(static_cast<Rank>(i), static_cast<Round>(t - 1), k)) /
             kNodes;
      }
      m[k] = 0.9 * m[k] + 0.1 * g;
      if (plain) {
        v[k] = 0.999 * v[k] + 0.001 * g * g;
        fresh[k] = v[k];
      } else {
        fresh[k] = 0.999 * fresh[k] + 0.001 * g * g;
      }
      u[k] = m[k] / (1 - std::pow(0.9, t)) / (std::sqrt(v[k] / correction) + 1e-8);
    }
    for (std::size_t l = 0; l < layout.size(); ++l) {
      const ParameterBlock& block = layout[l];
      const bool scaled = block.shape.size() > 1;
      double norm_x = 0;
      double norm_u = 0;
      double largest = 0;
      for (std::size_t k = block.offset; k < block.offset + block.size; ++k) {
        u[k] += scaled ? 0.01 * x[k] : 0;
        norm_x += x[k] * x[k];
        norm_u += u[k] * u[k];
        largest = std::fmax(largest, (std::sqrt(v[k] / correction) + 1e-8) /
                                         (std::sqrt(fresh[k] / fresh_correction) + 1e-8));
      }
      const double now = scaled ? std::sqrt(norm_x / norm_u) : 1;
      REQUIRE(now < 10);
      if (plain) {
        ratio[l] = t == 1 ? now : 0.9 * ratio[l] + 0.1 * now;
      } else if (scaled) {
        change[l] = std::clamp(std::clamp(largest, 0.9 * change[l], 1.1 * change[l]), 0.5, 4.0);
        farthest = std::fmax(farthest, std::fabs(change[l] - 1));
      }
      const double factor = plain ? now : change[l] * ratio[l];
      for (std::size_t k = block.offset; k < block.offset + block.size; ++k) {
        x[k] -= 1e-3 * factor * u[k];
      }
    }
    REQUIRE(cluster.driver.run(1, noisy).ok());
    for (std::size_t k = 0; k < d; ++k) {
      REQUIRE(std::fabs(static_cast<double>(cluster.x[0][k]) - x[k]) < 5e-6);
    }
  }
  CHECK(farthest > 1e-3);  // the ratio did move
}

TEST_CASE("1-bit LAMB brings all tensors to one size before it compresses them together") {
  LayoutCluster cluster(options("sign,chunk=0"));
  REQUIRE(cluster.driver.run(20, noisy).ok());
  const auto tensors = cluster.node(0).tensors();
  CHECK(tensors[2].scale > 10 * tensors[0].scale);  // gradients 100 times smaller
  REQUIRE(cluster.driver.run(60, noisy).ok());
  for (std::size_t i = 1; i < kNodes; ++i) {
    CHECK(same_bits(cluster.x[i], cluster.x[0]));
  }
}

TEST_CASE("1-bit LAMB resumes to the bit on both sides of the freeze") {
  for (const Round cut : {Round{7}, Round{33}}) {
    CAPTURE(cut);
    LayoutCluster whole(options("sign"));
    REQUIRE(whole.driver.run(50, noisy).ok());
    LayoutCluster first(options("sign"));
    REQUIRE(first.driver.run(cut, noisy).ok());
    LayoutCluster second(options("sign"));
    for (std::size_t i = 0; i < kNodes; ++i) {
      std::copy(first.x[i].begin(), first.x[i].end(), second.x[i].begin());
      ByteBuffer bytes;
      first.driver.node(i).save(bytes);
      ByteReader in(bytes.bytes());
      REQUIRE(second.driver.node(i).load(in).ok());
    }
    REQUIRE(second.driver.run(50 - cut, noisy).ok());
    CHECK(second.x == whole.x);
  }
}

}  // namespace sotto::test::onebit_lamb_test
