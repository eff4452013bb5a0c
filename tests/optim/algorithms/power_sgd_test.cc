#include <sotto/optim/algorithms/power_sgd.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/base/error.h>
#include <sotto/base/frame.h>

#include "optim/cluster.h"

namespace sotto::test::power_sgd_test {

namespace {

constexpr std::size_t kDimension = 20 * 12 + 20 + 6 * 18;

ParameterLayout network() {
  ParameterLayout layout;
  append_block(layout, "hidden.weight", {20, 12});
  append_block(layout, "hidden.bias", {20});
  append_block(layout, "conv.weight", {6, 2, 3, 3});
  return layout;
}

/// A cluster whose nodes know the network.
struct Network {
  explicit Network(const ClusterOptions& options)
      : x(options.nodes, std::vector<float>(options.dimension)) {
    for (std::size_t rank = 0; rank < options.nodes; ++rank) {
      AlgorithmSetup setup = node_setup(options, rank, x[rank], cluster_topology(options));
      setup.layout = network();
      driver.add(make_algorithm("powersgd", std::move(setup)));
    }
  }
  const PowerSgd& node(std::size_t rank) const {
    return dynamic_cast<const PowerSgd&>(driver.node(rank));
  }

  LockstepDriver driver{Delivery::eager};
  std::vector<std::vector<float>> x;
};

ClusterOptions options_for(std::size_t nodes, const std::string& compressor, double rate) {
  return {.algorithm = "powersgd",
          .compressor = compressor,
          .nodes = nodes,
          .dimension = kDimension,
          .step = {.learning_rate = rate}};
}

}  // namespace

TEST_CASE("PowerSGD: x − γ mean e follows SGD on the mean gradient, and all nodes stay equal") {
  constexpr double kRate = 0.05;
  for (const std::size_t nodes : {1U, 2U, 5U}) {
    CAPTURE(nodes);
    Network run(options_for(nodes, "lowrank:2", kRate));
    const Quadratic task(nodes, kDimension, 4);
    std::vector<double> exact(kDimension);
    for (int t = 0; t < 40; ++t) {
      // The mean gradient at the models before this round, by the identity Σ h (x − c).
      std::vector<double> stepped(run.x[0].begin(), run.x[0].end());
      const std::vector<double> before = stepped;
      task.descend(kRate, stepped);
      const Status status = run.driver.run(1, task);
      CAPTURE(status.message());
      REQUIRE(status.ok());
      for (std::size_t rank = 1; rank < nodes; ++rank) {
        REQUIRE(same_bits(run.x[rank], run.x[0]));
      }
      for (std::size_t k = 0; k < kDimension; ++k) {
        exact[k] += stepped[k] - before[k];
        double error = 0;
        for (std::size_t rank = 0; rank < nodes; ++rank) {
          error += double{run.node(rank).error()[k]} / static_cast<double>(nodes);
        }
        REQUIRE(std::fabs(double{run.x[0][k]} - kRate * error - exact[k]) < 1e-5);
      }
    }
    // The bias is averaged exactly.
    const auto error = run.node(0).error();
    CHECK(std::all_of(error.begin() + 240, error.begin() + 260, [](float e) { return e == 0; }));
  }
}

TEST_CASE("PowerSGD descends to the optimum with two columns of each matrix") {
  Network run(options_for(4, "lowrank:2", 0.05));
  const Quadratic task(4, kDimension, 8);
  const auto excess = [&] {
    return task.excess(std::vector<double>(run.x[0].begin(), run.x[0].end()));
  };
  const double before = excess();
  REQUIRE(run.driver.run(3000, task).ok());
  INFO("excess ", excess(), " of ", before);
  CHECK(excess() < 1e-4 * before);
}

TEST_CASE("PowerSGD with factors of full rank is all-reduce SGD") {
  // No factor of 12 columns would be smaller: everything is averaged exactly.
  Network run(options_for(3, "lowrank:12", 0.1));
  Cluster plain({.algorithm = "allreduce",
                 .nodes = 3,
                 .dimension = kDimension,
                 .step = {.learning_rate = 0.1},
                 .initial_scale = 0});
  const Quadratic task(3, kDimension, 5);
  REQUIRE(run.driver.run(30, task).ok());
  REQUIRE(plain.driver.run(30, task).ok());
  for (std::size_t rank = 0; rank < 3; ++rank) {
    CHECK(same_bits(run.x[rank], plain.x[rank]));
  }
}

TEST_CASE("PowerSGD sends the factors and what is exact, in 4 (n − 1) frames a round") {
  Network run(options_for(4, "lowrank:2", 0.05));
  REQUIRE(run.driver.run(5, Quadratic(4, kDimension, 4)).ok());
  std::uint64_t bytes = 0;
  for (const auto& [edge, traffic] : run.driver.traffic()) {
    CHECK(edge.second == (edge.first + 1) % 4);
    CHECK(traffic.frames == 5 * 12);
    bytes += traffic.bytes;
  }
  // Both halves of a ring send every chunk three times.
  const std::uint64_t floats = 2 * (20 + 12) + 20 + 2 * (6 + 18);
  CHECK(bytes == 5 * (2 * 3 * floats * 4 + 4 * 12 * kFrameHeaderBytes));
}

TEST_CASE("PowerSGD takes no other compressor, also not one of several that holds lowrank") {
  for (const std::string spec : {"topk:0.1", "lowrank:2; 1d=none"}) {
    CAPTURE(spec);
    try {
      const Cluster cluster({.algorithm = "powersgd", .compressor = spec});
      FAIL("it was built");
    } catch (const Error& error) {
      CHECK(std::string(error.what()).find("use lowrank:2") != std::string::npos);
    }
  }
}

TEST_CASE("PowerSGD makes one step of the iteration a round, and refuses to be asked for more") {
  const ClusterOptions options{.algorithm = "powersgd", .compressor = "lowrank:2,steps=2"};
  CHECK_THROWS_AS(Cluster{options}, Error);
}

}  // namespace sotto::test::power_sgd_test
