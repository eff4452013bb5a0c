// CHOCO-SGD: the rule, and what stands for the copies.
#include <sotto/optim/algorithms/choco_sgd.h>

#include <cmath>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "optim/by_the_paper.h"
#include "optim/cluster.h"

namespace sotto::test::choco_sgd_test {

TEST_CASE("CHOCO is the rule of its papers, taken down in double precision") {
  constexpr double kRate = 0.05;
  Cluster cluster(five_nodes("choco:eta=0.4", kRate));
  const Quadratic task(5, 8, 5);
  Rows x = rows_of(cluster.x);
  Rows copies(x.size(), Row(x[0].size()));
  for (int t = 0; t < 60; ++t) {
    REQUIRE(cluster.driver.run(1, task).ok());
    for (std::size_t i = 0; i < x.size(); ++i) {
      x[i] = plus(x[i], step_of(task, i, x[i], kRate), -1);
      copies[i] = plus(copies[i], largest(plus(x[i], copies[i], -1), kKept));
    }
    for (std::size_t i = 0; i < x.size(); ++i) {
      x[i] = plus(x[i], plus(mixed(copies, i), copies[i], -1), 0.4);
    }
    REQUIRE(distance(cluster.x, x) < 1e-5);
  }
}

TEST_CASE("CHOCO: what a node keeps in place of its neighbours' copies is what it stands for") {
  Cluster cluster({.algorithm = "choco", .compressor = "topk:0.1"});
  REQUIRE(cluster.driver.run(200, Quadratic(8, 64, 3)).ok());
  for (std::size_t i = 0; i < 8; ++i) {
    const auto pull = cluster.node<ChocoSgd>(i).pull();
    const auto own = cluster.node<ChocoSgd>(i).public_copy();
    const auto left = cluster.node<ChocoSgd>((i + 7) % 8).public_copy();
    const auto right = cluster.node<ChocoSgd>((i + 1) % 8).public_copy();
    for (std::size_t k = 0; k < 64; ++k) {
      const double expected = (double{left[k]} + double{right[k]} - 2 * double{own[k]}) / 3;
      CHECK(std::fabs(double{pull[k]} - expected) < 1e-5);
    }
  }
}

}  // namespace sotto::test::choco_sgd_test
