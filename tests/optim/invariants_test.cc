// The invariants that make the algorithms work, held over hundreds of rounds.
#include <cmath>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "optim/cluster.h"
#include "optim/meeting_contract.h"

namespace sotto::test::invariants_test {

namespace {

double largest_difference(const std::vector<double>& a, const std::vector<double>& b) {
  double largest = 0;
  for (std::size_t k = 0; k < a.size(); ++k) {
    largest = std::fmax(largest, std::fabs(a[k] - b[k]));
  }
  return largest;
}

/// Plain SGD on the mean gradient of a Quadratic without noise, in double precision.
std::vector<double> plain_sgd(const Quadratic& task, std::vector<double> x, double rate,
                              Round rounds) {
  for (Round t = 0; t < rounds; ++t) {
    task.descend(rate, x);
  }
  return x;
}

}  // namespace

TEST_CASE("DeepSqueeze and CHOCO: the mean model follows plain SGD, whatever the compressor") {
  // Exact but for rounding: 300 rounds of 2^-24 of the sent values, models of size 3.
  constexpr std::size_t kDimension = 130;
  constexpr double kRate = 0.05;
  for (const std::string algorithm : {"deepsqueeze", "choco"}) {
    for (const std::string& spec : compressors_meeting(ContractKind::contraction, kDimension)) {
      CAPTURE(algorithm);
      CAPTURE(spec);
      Cluster cluster({.algorithm = algorithm,
                       .compressor = spec,
                       .dimension = kDimension,
                       .step = {.learning_rate = kRate}});
      const Quadratic task(8, kDimension, 3);
      const auto start = cluster.mean();
      const Status status = cluster.driver.run(300, task);
      CAPTURE(status.message());
      REQUIRE(status.ok());
      CHECK(largest_difference(cluster.mean(), plain_sgd(task, start, kRate, 300)) < 2e-5);
    }
  }
}

TEST_CASE("D-PSGD on a graph that changes every round averages exactly") {
  Cluster cluster({.topology = "one-peer-exponential", .step = {.learning_rate = 0}});
  for (std::size_t rank = 0; rank < 8; ++rank) {
    for (float& value : cluster.x[rank]) {
      value = static_cast<float>(rank);
    }
  }
  REQUIRE(cluster.driver.run(3, Quadratic(8, 64, 3)).ok());
  for (const auto& model : cluster.x) {
    CHECK(model == std::vector<float>(64, 3.5F));
  }
}

TEST_CASE("compressed gossip brings the models together") {
  for (const std::string algorithm : {"dcd", "choco"}) {
    CAPTURE(algorithm);
    Cluster cluster({.algorithm = algorithm, .step = {.learning_rate = 0.01}});
    REQUIRE(cluster.driver.run(600, Quadratic(8, 64, 3)).ok());
    const auto mean = cluster.mean();
    double distance = 0;
    for (const auto& model : cluster.x) {
      for (std::size_t k = 0; k < mean.size(); ++k) {
        distance += std::pow(double{model[k]} - mean[k], 2) / 8;
      }
    }
    CAPTURE(distance);
    CHECK(distance < 2);  // of 64 parameters whose local optima are N(1, 1): apart it would be 64
  }
}

}  // namespace sotto::test::invariants_test
