// The invariants that make the algorithms work, held over hundreds of rounds.
#include <cmath>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/optim/algorithms/choco_sgd.h>
#include <sotto/optim/algorithms/dcd_psgd.h>
#include <sotto/optim/algorithms/deep_squeeze.h>
#include <sotto/optim/algorithms/ecd_psgd.h>

#include "optim/cluster.h"

using namespace sotto;
using namespace sotto::test;

namespace {

/// The examples of all compressors in the form that `need` asks for, where there is one.
std::vector<std::string> compressors_meeting(ContractKind need, std::size_t dimension) {
  std::vector<std::string> specs;
  for (const CompressorInfo& info : compressors()) {
    const auto compressor = make_compressor(info.example, need);
    if (compressor->contract(dimension).meets(need)) {
      specs.push_back(compressor->spec());
    }
  }
  return specs;
}

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

TEST_CASE("DCD: every replica equals the neighbour's model bit for bit for 200 rounds") {
  constexpr std::size_t kDimension = 130;
  auto specs = compressors_meeting(ContractKind::unbiased, kDimension);
  specs.emplace_back("randk:0.5");
  for (const std::string& spec : specs) {
    const auto compressor = make_compressor(spec, ContractKind::unbiased);
    if (measure_alpha(*compressor, kDimension, 20) > 1.2) {
      continue;  // DCD diverges from there on
    }
    for (const std::string topology : {"ring", "star"}) {
      CAPTURE(spec);
      CAPTURE(topology);
      Cluster cluster({.algorithm = "dcd",
                       .compressor = spec,
                       .topology = topology,
                       .nodes = 5,
                       .dimension = kDimension,
                       .step = {.learning_rate = 0.05, .momentum = 0.5}});
      const Quadratic task(5, kDimension, 3, 0.5);
      for (int t = 0; t < 200; ++t) {
        const Status status = cluster.driver.run(1, task);
        CAPTURE(status.message());
        REQUIRE(status.ok());
        for (std::size_t rank = 0; rank < 5; ++rank) {
          for (const Replica& replica : cluster.node<DcdPsgd>(rank).replicas()) {
            REQUIRE(same_bits(replica.model, cluster.x[static_cast<std::size_t>(replica.peer)]));
          }
        }
      }
    }
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

TEST_CASE("DeepSqueeze on a graph that changes every round keeps the mean too") {
  Cluster cluster({.algorithm = "deepsqueeze",
                   .compressor = "sign",
                   .topology = "one-peer-exponential",
                   .step = {.learning_rate = 0.05}});
  const Quadratic task(8, 64, 3);
  const auto start = cluster.mean();
  REQUIRE(cluster.driver.run(300, task).ok());
  CHECK(largest_difference(cluster.mean(), plain_sgd(task, start, 0.05, 300)) < 2e-5);
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
