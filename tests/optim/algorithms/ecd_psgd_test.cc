// ECD-PSGD: the rule, estimates, and the clock of the extrapolation.
#include <sotto/optim/algorithms/ecd_psgd.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "optim/by_the_paper.h"
#include "optim/cluster.h"

namespace sotto::test::ecd_psgd_test {

TEST_CASE("ECD is Algorithm 2 of its paper, taken down in double precision") {
  constexpr double kRate = 0.05;
  Cluster cluster(five_nodes("ecd", kRate));
  const Quadratic task(5, 8, 5);
  Rows x = rows_of(cluster.x);
  Rows y = x;
  for (int t = 1; t <= 40; ++t) {
    REQUIRE(cluster.driver.run(1, task).ok());
    Rows next = x;
    Rows estimates = y;
    for (std::size_t i = 0; i < x.size(); ++i) {
      next[i] = plus(mixed(y, i), step_of(task, i, x[i], kRate), -1);
      const Row z = plus(x[i], plus(next[i], x[i], -1), t / 2.0);
      estimates[i] = plus(y[i], plus(largest(z, kKept), y[i], -1), 2.0 / t);
    }
    x = next;
    y = estimates;
    REQUIRE(distance(cluster.x, x) < 1e-4);
  }
}

TEST_CASE("ECD: every holder has the same estimate bit for bit for 200 rounds") {
  Cluster cluster({.algorithm = "ecd",
                   .compressor = "quant:8",
                   .nodes = 5,
                   .step = {.learning_rate = 0.01},
                   .allow_contract_violation = true});
  const Quadratic task(5, 64, 3, 0.5);
  for (int t = 0; t < 200; ++t) {
    REQUIRE(cluster.driver.run(1, task).ok());
    for (std::size_t rank = 0; rank < 5; ++rank) {
      for (const Replica& estimate : cluster.node<EcdPsgd>(rank).estimates()) {
        const auto& owner = cluster.node<EcdPsgd>(static_cast<std::size_t>(estimate.peer));
        REQUIRE(same_bits(estimate.model, owner.own_estimate()));
      }
    }
  }
}

TEST_CASE("ECD without compression: y = x to rounding, and the models are D-PSGD's") {
  // y is corrected by (2/t)(z − y) with |z| ~ |x| + (t/2)|Δx|: a rounding error of 2^-24 |z| enters
  // as 2^-24 (|x| 2/t + |Δx|), and y's own rounding of 2^-25 |y| a round adds up as a random walk.
  const ClusterOptions options{.algorithm = "ecd", .compressor = "none"};
  auto other = options;
  other.algorithm = "dpsgd";
  Cluster ecd(options);
  Cluster dpsgd(other);
  const Quadratic task(8, 64, 3, 0.5);
  for (int t = 0; t < 5000; t += 250) {
    REQUIRE(ecd.driver.run(250, task).ok());
    REQUIRE(dpsgd.driver.run(250, task).ok());
    double from_model = 0;
    double from_dpsgd = 0;
    for (std::size_t rank = 0; rank < 8; ++rank) {
      const auto y = ecd.node<EcdPsgd>(rank).own_estimate();
      for (std::size_t k = 0; k < 64; ++k) {
        from_model = std::fmax(from_model, std::fabs(double{y[k]} - double{ecd.x[rank][k]}));
        from_dpsgd =
            std::fmax(from_dpsgd, std::fabs(double{dpsgd.x[rank][k]} - double{ecd.x[rank][k]}));
      }
    }
    CAPTURE(t);
    CHECK(from_model < 2e-5);
    CHECK(from_dpsgd < 2e-5);
  }
}

TEST_CASE("ECD with a fixed grid stays stable, past the rounds where its clock stops") {
  Cluster cluster({.algorithm = "ecd",
                   .compressor = "grid:8:0.05",
                   .step = {.learning_rate = 0.1},
                   .initial_scale = 0});
  const Quadratic task(8, 64, 11);
  for (int t = 0; t < 9000; t += 1500) {
    REQUIRE(cluster.driver.run(1500, task).ok());
    CAPTURE(t);
    CHECK(task.excess(cluster.mean()) < 1e-2);
  }
  CHECK(cluster.driver.node(0).counters().saturated == 0);
}

TEST_CASE("with noise, an early stop of ECD's clock lets a fine grid hold the extrapolated model") {
  const auto saturated = [](const std::string& algorithm) {
    Cluster cluster({.algorithm = algorithm,
                     .compressor = "grid:8:0.05",
                     .step = {.learning_rate = 0.05},
                     .initial_scale = 0});
    const Quadratic task(8, 64, 11, 1);
    REQUIRE(cluster.driver.run(1000, task).ok());
    MESSAGE(algorithm, ": ", task.excess(cluster.mean()));
    return std::pair(cluster.driver.node(0).counters().saturated, task.excess(cluster.mean()));
  };
  const auto [never_stopped, far] = saturated("ecd");
  const auto [stopped, near] = saturated("ecd:clock=8");
  CHECK(never_stopped > 1000);
  CHECK(stopped == 0);
  CHECK(near < 0.2);
  CHECK(far > 2 * near);
}

}  // namespace sotto::test::ecd_psgd_test
