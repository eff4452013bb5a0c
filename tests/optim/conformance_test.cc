// What every algorithm of the registry must do, for every algorithm of the registry.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/base/frame.h>

#include "optim/cluster.h"

namespace sotto::test::conformance_test {

namespace {

/// Small steps and a mild compressor, so that every algorithm converges on Quadratic.
ClusterOptions gentle(const AlgorithmInfo& info) {
  ClusterOptions options{.algorithm = std::string(info.name), .step = {.learning_rate = 0.05}};
  if (info.step_rules.only == "lamb") {
    options.step.learning_rate = 0.01;  // a fraction of the model's norm a step
  } else if (info.learning_rate > 0) {
    options.step.learning_rate = 0.02;  // the length of every step in each coordinate
    options.compressor = "dct/topk:0.2";
  }
  return options;
}

bool all_finite(const std::vector<std::vector<float>>& models) {
  return std::all_of(models.begin(), models.end(), [](const auto& model) {
    return std::all_of(model.begin(), model.end(),
                       [](float value) { return std::isfinite(value); });
  });
}

}  // namespace

TEST_CASE("every algorithm runs at every number of nodes and parameters, none included") {
  for (const AlgorithmInfo& info : algorithms()) {
    CAPTURE(info.name);
    for (std::size_t nodes = 1; nodes <= 9; ++nodes) {
      CAPTURE(nodes);
      for (const std::size_t dimension : {0U, 1U, 3U, 1000U}) {
        CAPTURE(dimension);
        auto options = gentle(info);
        options.nodes = nodes;
        options.dimension = dimension;
        Cluster cluster(options);
        const auto start = cluster.x;
        const Quadratic task(nodes, dimension, 5);
        const Status status = cluster.driver.run(3, task);
        CAPTURE(status.message());
        REQUIRE(status.ok());
        CHECK(all_finite(cluster.x));
        CHECK((dimension == 0 || cluster.x != start));
        for (std::size_t rank = 0; rank < nodes; ++rank) {
          CHECK(cluster.driver.node(rank).round() == 3);
          CHECK(cluster.driver.node(rank).idle());
          CHECK(cluster.driver.node(rank).counters().bad_frames == 0);
        }
      }
    }
  }
}

TEST_CASE("every algorithm brings the quadratic's excess down by a factor of 100") {
  for (const AlgorithmInfo& info : algorithms()) {
    CAPTURE(info.name);
    auto options = gentle(info);
    options.freeze_step = 100;
    if (info.has("limit")) {
      options.algorithm += ":limit=1";  // the nodes' optima differ: local steps leave a floor
    }
    if (info.has("decay")) {
      options.algorithm += ":decay=1";  // for the same reason
    }
    Cluster cluster(options);
    const Quadratic task(8, 64, 5);
    const double before = task.excess(cluster.mean());
    const Status status = cluster.driver.run(400, task);
    CAPTURE(status.message());
    REQUIRE(status.ok());
    CHECK(task.excess(cluster.mean()) < before / 100);
  }
}

TEST_CASE(
    "every algorithm runs with every compressor that meets its contract, in any order of "
    "delivery") {
  for (const AlgorithmInfo& info : algorithms()) {
    for (const CompressorInfo& family : compressors()) {
      CAPTURE(info.name);
      CAPTURE(family.name);
      auto options = gentle(info);
      options.compressor = family.example;
      options.dimension = 130;
      if (fitting(options.compressor, info) != options.compressor ||
          !make_compressor(family.example, info.contract)->contract(130).meets(info.contract)) {
        continue;
      }
      Cluster eager(options);
      options.delivery = Delivery::late;
      Cluster late(options);
      const Quadratic task(8, 130, 5, 0.1);
      const Status status = eager.driver.run(20, task);
      CAPTURE(status.message());
      REQUIRE(status.ok());
      REQUIRE(late.driver.run(20, task).ok());
      CHECK(all_finite(eager.x));
      CHECK(eager.x == late.x);
    }
  }
}

}  // namespace sotto::test::conformance_test
