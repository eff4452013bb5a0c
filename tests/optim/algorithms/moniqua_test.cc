// Moniqua: models modulo a range, and what happens at its end.
#include <sotto/optim/algorithms/moniqua.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/base/error.h>
#include <sotto/compress/grid.h>

#include "optim/cluster.h"

namespace sotto::test::moniqua_test {

namespace {

ClusterOptions options_for(std::string compressor, std::string topology = "ring") {
  return {.algorithm = "moniqua",
          .compressor = std::move(compressor),
          .topology = std::move(topology),
          .nodes = 8,
          .dimension = 64,
          .step = {.learning_rate = 0.05}};
}

void still(Rank, Round, std::span<const float>, std::span<float> g) {
  std::fill(g.begin(), g.end(), 0.0F);
}

std::string refusal(const ClusterOptions& options) {
  std::vector<float> x(options.dimension);
  try {
    (void)make_algorithm(spec_of(options), node_setup(options, 0, x, cluster_topology(options)));
    return {};
  } catch (const Error& error) {
    return error.what();
  }
}

bool mentions(const std::string& message, const std::vector<std::string>& parts) {
  return std::all_of(parts.begin(), parts.end(), [&](const std::string& part) {
    return message.find(part) != std::string::npos;
  });
}

}  // namespace

TEST_CASE("a model that starts, or is loaded, beyond 2^48 steps of the grid is refused") {
  const auto options = options_for("grid:8:1e-6");
  const auto topology = cluster_topology(options);
  std::vector<float> x(64);
  const auto make = [&] { return make_algorithm("moniqua", node_setup(options, 0, x, topology)); };
  x[5] = -0x1p49F * 1e-6F;
  try {
    make();
    FAIL("it was built");
  } catch (const Error& error) {
    CHECK(mentions(error.what(), {"parameters: '-5", "element 5 is beyond 2^48 steps", "larger"}));
  }
  x[5] = 0x1p47F * 1e-6F;
  const auto node = make();
  ByteBuffer saved;
  node->save(saved);
  ByteReader good(saved.bytes());
  CHECK(node->load(good).ok());
  x[5] = 3e38F;
  ByteReader in(saved.bytes());
  const Status status = node->load(in);
  CHECK(status.fault() == Fault::non_finite);
  CHECK(mentions(status.message(), {"node 0, round 0", "loaded model", "beyond 2^48 steps"}));
}

TEST_CASE("the mean model of Moniqua follows SGD, whatever the grid") {
  for (const char* compressor : {"grid:8:0.01", "grid:6:0.1", "grid:3:1"}) {
    CAPTURE(compressor);
    auto options = options_for(compressor);
    Cluster cluster(options);
    const Quadratic task(8, 64, 5);
    auto x = cluster.mean();
    for (int t = 0; t < 200; ++t) {
      const Status status = cluster.driver.run(1, task);
      CAPTURE(status.message());
      REQUIRE(status.ok());
      // All nodes have these curvatures: the mean gradient is that at the mean model.
      task.descend(0.05, x);
      const auto mean = cluster.mean();
      for (std::size_t k = 0; k < x.size(); ++k) {
        REQUIRE(std::fabs(mean[k] - x[k]) < 1e-5);
      }
    }
  }
}

TEST_CASE("Moniqua tracks D-PSGD to within its grid") {
  const double step = 0.01;
  Cluster moniqua(options_for("grid:8:0.01"));
  auto options = options_for("none");
  options.algorithm = "dpsgd";
  Cluster dpsgd(options);
  const Quadratic task(8, 64, 5, 0.1);
  REQUIRE(moniqua.driver.run(300, task).ok());
  REQUIRE(dpsgd.driver.run(300, task).ok());
  double squares = 0;
  for (std::size_t i = 0; i < 8; ++i) {
    for (std::size_t k = 0; k < 64; ++k) {
      squares += std::pow(static_cast<double>(moniqua.x[i][k] - dpsgd.x[i][k]), 2);
    }
  }
  CHECK(std::sqrt(squares / (8 * 64)) < 2 * step);
  CHECK(task.excess(moniqua.mean()) < 1.5 * task.excess(dpsgd.mean()));
}

TEST_CASE("models come together to within a step, from anywhere within θ and far from 0") {
  RandomStream random({.seed = 3, .purpose = Purpose::test});
  for (const double offset : {0.0, 30.0, -4e4}) {
    CAPTURE(offset);
    Cluster cluster(options_for("grid:6:0.01", "complete"));
    const double reach = cluster.node<Moniqua>(0).reach();
    CHECK(reach == doctest::Approx((32 - 1.5) * 0.01));
    for (auto& model : cluster.x) {
      for (float& value : model) {
        value = static_cast<float>(offset + 0.98 * reach * random.uniform());
      }
    }
    const Status status = cluster.driver.run(30, still);
    CAPTURE(status.message());
    REQUIRE(status.ok());
    for (const auto& model : cluster.x) {
      for (std::size_t k = 0; k < model.size(); ++k) {
        CHECK(std::fabs(model[k] - cluster.x[0][k]) < 0.02F + 1e-7F * std::fabs(model[k]));
      }
    }
  }
}

TEST_CASE("models further than θ apart are always told, with both nodes, round and θ") {
  RandomStream random({.seed = 11, .purpose = Purpose::test});
  for (int trial = 0; trial < 300; ++trial) {
    CAPTURE(trial);
    const int bits = 3 + static_cast<int>(random.below(6));
    const std::string grid = "grid:" + std::to_string(bits) + ":0.25";
    auto options = options_for(grid, "complete");
    options.nodes = 2;
    options.seed = static_cast<std::uint64_t>(trial);
    Cluster cluster(options);
    // Elements of node 1 end a multiple of the range away: the codes alone would not tell.
    const auto wrapped = 1 + random.below(5);
    for (std::uint64_t i = 0; i < wrapped; ++i) {
      const auto turns = static_cast<double>(random.below(4) + 1) * (random.below(2) == 0 ? 1 : -1);
      cluster.x[1][(random.below(64))] += static_cast<float>(turns * 0.25 * (1 << bits));
    }
    if (cluster.x[1] == cluster.x[0]) {
      continue;  // turns that cancelled
    }
    const Status status = cluster.driver.run(1, still);
    CAPTURE(status.message());
    CHECK(status.fault() == Fault::unexpected);
    CHECK(mentions(status.message(), {"node 0, round 0", "nodes 0 and 1", "θ = ", grid, "raise"}));
  }
}

TEST_CASE("a run that drifts apart ends with that fault, and not with wrong models") {
  auto options = options_for("grid:4:0.01");
  options.step.learning_rate = 0.5;
  Cluster cluster(options);
  const Status status = cluster.driver.run(100, Quadratic(8, 64, 5));
  CHECK(status.fault() == Fault::unexpected);
  CHECK(mentions(status.message(), {"further than θ = 0.065 apart"}));
  options.compressor = "grid:8:0.1";
  Cluster wide(options);
  CHECK(wide.driver.run(100, Quadratic(8, 64, 5)).ok());
}

TEST_CASE("a payload of another grid is refused") {
  auto options = options_for("grid:8:0.01", "complete");
  options.nodes = 2;
  const auto topology = cluster_topology(options);
  std::vector<std::vector<float>> x(2, std::vector<float>(64));
  LockstepDriver driver;
  for (std::size_t rank = 0; rank < 2; ++rank) {
    options.compressor = rank == 0 ? "grid:8:0.01" : "grid:8:0.02";
    driver.add(make_algorithm("moniqua", node_setup(options, rank, x[rank], topology)));
  }
  const Status status = driver.run(1, still);
  CHECK(status.fault() == Fault::malformed);
  CHECK(
      mentions(status.message(), {"frame from node 1", "steps of 0.02 where 8 in steps of 0.01"}));
}

TEST_CASE("a round of Moniqua sends B bits an element, a grid and a sum") {
  for (const int bits : {3, 5, 8}) {
    auto options = options_for("grid:" + std::to_string(bits) + ":0.5");
    options.dimension = 1000;
    Cluster cluster(options);
    REQUIRE(cluster.driver.run(3, still).ok());
    CHECK(cluster.driver.bytes_sent(5) == 3 * 2 * (64 + 13 + packed_bytes(1000, bits)));
  }
}

TEST_CASE("what Moniqua cannot round is refused") {
  CHECK(refusal(options_for("grid:8:0.01")).empty());
  CHECK(mentions(refusal(options_for("grid:2:0.01")), {"compressor: 'grid:2:0.01'", "3 to 8"}));
  for (const char* other : {"none", "quant:8", "fp16"}) {
    auto options = options_for(other);
    options.allow_contract_violation = true;
    CHECK(mentions(refusal(options), {"compressor: '", "takes grid only", "grid:8:0.01"}));
  }

  auto fine = options_for("grid:8:1e-30", "complete");
  fine.initial_scale = 0;
  Cluster cluster(fine);
  const auto leap = [](Rank, Round, std::span<const float>, std::span<float> g) {
    std::fill(g.begin(), g.end(), 1.0F);
  };
  const Status status = cluster.driver.run(1, leap);
  CHECK(status.fault() == Fault::non_finite);
  CHECK(mentions(status.message(), {"node 0, round 0", "element 0", "larger step"}));
}

TEST_CASE("integers are rounded without bias, and found again across block borders") {
  constexpr std::size_t kElements = 3001;
  const Ops& ops = host_ops();
  ModuloGrid grid({.bits = 5, .step = 0.5F}, 9, 1, ops);
  std::vector<float> x(kElements);
  std::vector<float> near(kElements);
  RandomStream random({.seed = 4, .purpose = Purpose::test});
  for (std::size_t e = 0; e < kElements; ++e) {
    x[e] = static_cast<float>(100 * random.normal());
    near[e] = x[e] + static_cast<float>((2 * random.uniform() - 1) * 0.999 * grid.reach());
  }
  std::vector<double> mean(kElements);
  constexpr Round kRounds = 400;
  std::vector<std::byte> sent(grid.payload_bytes(kElements));
  std::vector<std::byte> own(sent.size());
  for (Round round = 0; round < kRounds; ++round) {
    grid.encode(x, {.seed = 9, .rank = 1, .round = round, .purpose = Purpose::quantize}, sent);
    grid.encode(near, {.seed = 9, .rank = 0, .round = round, .purpose = Purpose::quantize}, own);
    REQUIRE(grid.check_header(sent, kElements).ok());
    const ModuloGrid::Heard heard{.payload = sent, .weight = 1};
    std::vector<float> mixed(kElements);
    REQUIRE_FALSE(grid.mix(near, own, {&heard, 1}, round, mixed).has_value());
    for (std::size_t e = 0; e < kElements; ++e) {
      mean[e] += static_cast<double>(mixed[e]) / kRounds;  // near + x̂ − n̂ear
    }
  }
  double squares = 0;
  for (std::size_t e = 0; e < kElements; ++e) {
    squares += std::pow(mean[e] - static_cast<double>(x[e]), 2);
  }
  // Each of two roundings has variance STEP² f (1 − f), STEP²/6 on average.
  const double expected = std::sqrt(2 * 0.25 / 6 / kRounds);
  CHECK(std::sqrt(squares / kElements) == doctest::Approx(expected).epsilon(0.1));
}

}  // namespace sotto::test::moniqua_test
