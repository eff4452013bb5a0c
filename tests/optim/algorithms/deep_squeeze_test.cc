// DeepSqueeze: the rule, its errors, and the mean on a graph that changes.
#include <sotto/optim/algorithms/deep_squeeze.h>

#include <cmath>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "optim/by_the_paper.h"
#include "optim/cluster.h"

namespace sotto::test::deep_squeeze_test {

TEST_CASE("DeepSqueeze is the rule of its paper, taken down in double precision") {
  constexpr double kRate = 0.05;
  Cluster cluster(five_nodes("deepsqueeze:eta=0.3", kRate));
  const Quadratic task(5, 8, 5);
  Rows x = rows_of(cluster.x);
  Rows errors(x.size(), Row(x[0].size()));
  for (int t = 0; t < 60; ++t) {
    REQUIRE(cluster.driver.run(1, task).ok());
    Rows sent = x;
    for (std::size_t i = 0; i < x.size(); ++i) {
      x[i] = plus(x[i], step_of(task, i, x[i], kRate), -1);
      const Row v = plus(x[i], errors[i]);
      sent[i] = largest(v, kKept);
      errors[i] = plus(v, sent[i], -1);
    }
    for (std::size_t i = 0; i < x.size(); ++i) {
      x[i] = plus(x[i], plus(mixed(sent, i), sent[i], -1), 0.3);
    }
    REQUIRE(distance(cluster.x, x) < 1e-5);
    for (std::size_t i = 0; i < x.size(); ++i) {
      const auto error = cluster.node<DeepSqueeze>(i).error();
      for (std::size_t k = 0; k < error.size(); ++k) {
        REQUIRE(std::fabs(double{error[k]} - errors[i][k]) < 1e-5);
      }
    }
  }
}

TEST_CASE("DeepSqueeze on a graph that changes every round keeps the mean too") {
  Cluster cluster({.algorithm = "deepsqueeze",
                   .compressor = "sign",
                   .topology = "one-peer-exponential",
                   .step = {.learning_rate = 0.05}});
  const Quadratic task(8, 64, 3);
  auto expected = cluster.mean();
  REQUIRE(cluster.driver.run(300, task).ok());
  for (int t = 0; t < 300; ++t) {
    task.descend(0.05, expected);
  }
  const auto mean = cluster.mean();
  for (std::size_t k = 0; k < mean.size(); ++k) {
    CHECK(std::fabs(mean[k] - expected[k]) < 2e-5);
  }
}

}  // namespace sotto::test::deep_squeeze_test
