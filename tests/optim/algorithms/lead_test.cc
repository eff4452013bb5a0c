// LEAD: the mean follows plain SGD whatever is compressed, and unbiased compression of few bits
// leaves no floor.
#include <sotto/optim/algorithms/lead.h>

#include <cmath>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/base/error.h>

#include "optim/cluster.h"
#include "optim/uneven.h"

namespace sotto::test::lead_test {

namespace {

std::uint64_t draw_seed(std::uint32_t number) {
  RandomStream stream({.seed = 2007'00232, .round = number, .purpose = Purpose::test});
  return stream.next_u64() >> 40U;
}

ClusterOptions options_for(std::string algorithm, std::string compressor, double rate = 0.1) {
  return {.algorithm = std::move(algorithm),
          .compressor = std::move(compressor),
          .dimension = 16,
          .step = {.learning_rate = rate}};
}

/// LEAD as the paper writes it, with its dual D, without compression, in double precision.
class Paper {
 public:
  Paper(std::size_t nodes, const std::vector<float>& start, double gamma)
      : gamma_(gamma),
        x_(nodes, std::vector<double>(start.begin(), start.end())),
        dual_(nodes, std::vector<double>(start.size())),
        topology_(make_topology("ring", static_cast<int>(nodes), {})) {}

  void step(const Uneven& task, double rate) {
    std::vector<std::vector<double>> y = x_;
    for (std::size_t i = 0; i < x_.size(); ++i) {
      for (std::size_t k = 0; k < y[i].size(); ++k) {
        y[i][k] -= rate * (task.slope(i, k, x_[i][k]) + dual_[i][k]);
      }
    }
    for (std::size_t i = 0; i < x_.size(); ++i) {
      for (std::size_t k = 0; k < y[i].size(); ++k) {
        double pull = 0;
        for (const Edge& edge : topology_->in_edges(static_cast<Rank>(i), 0)) {
          pull += static_cast<double>(edge.weight) *
                  (y[static_cast<std::size_t>(edge.peer)][k] - y[i][k]);
        }
        const double slope = task.slope(i, k, x_[i][k]);
        dual_[i][k] -= gamma_ / (2 * rate) * pull;
        x_[i][k] -= rate * (slope + dual_[i][k]);
      }
    }
  }

  const std::vector<std::vector<double>>& models() const { return x_; }

 private:
  double gamma_;
  std::vector<std::vector<double>> x_;
  std::vector<std::vector<double>> dual_;
  std::shared_ptr<const Topology> topology_;
};

double largest_gap(const std::vector<std::vector<float>>& a,
                   const std::vector<std::vector<double>>& b) {
  double gap = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    for (std::size_t k = 0; k < a[i].size(); ++k) {
      gap = std::fmax(gap, std::fabs(static_cast<double>(a[i][k]) - b[i][k]));
    }
  }
  return gap;
}

}  // namespace

TEST_CASE("LEAD without compression is D² with (I + W)/2") {
  for (std::uint32_t number = 0; number < 3; ++number) {
    const std::uint64_t seed = draw_seed(number);
    CAPTURE(seed);
    const Uneven task(8, 16, seed);
    auto options = options_for("lead:gamma=1", "none");
    options.seed = seed;
    Cluster lead(options);
    options.algorithm = "d2";  // the cluster's graph is lazy for it
    options.compressor = "";
    Cluster d2(options);
    for (int t = 0; t < 300; ++t) {
      REQUIRE(lead.driver.run(1, task).ok());
      REQUIRE(d2.driver.run(1, task).ok());
      for (std::size_t i = 0; i < 8; ++i) {
        for (std::size_t k = 0; k < 16; ++k) {
          REQUIRE(std::fabs(static_cast<double>(lead.x[i][k] - d2.x[i][k])) < 1e-5);
        }
      }
    }
  }
}

TEST_CASE(
    "LEAD follows its paper, and its dual, not its correction, stays where the rate changes") {
  const std::uint64_t seed = draw_seed(10);
  CAPTURE(seed);
  const Uneven task(8, 16, seed);
  auto options = options_for("lead:gamma=0.7", "none");
  options.step.schedule = parse_schedule("step:40:0.5,warmup=20", 200);
  options.seed = seed;
  Cluster lead(options);
  Paper paper(8, lead.x[0], static_cast<double>(0.7F));
  for (Round t = 0; t < 200; ++t) {
    CAPTURE(t);
    REQUIRE(lead.driver.run(1, task).ok());
    paper.step(task, 0.1 * options.step.schedule.multiplier(t));
    REQUIRE(largest_gap(lead.x, paper.models()) < 2e-5);
  }
}

TEST_CASE("LEAD: the mean model follows plain SGD, and corrections cancel, for every compressor") {
  constexpr std::size_t kDimension = 130;
  constexpr double kRate = 0.02;
  std::uint32_t number = 20;
  for (const CompressorInfo& family : compressors()) {
    const auto compressor = make_compressor(family.example, ContractKind::unbiased);
    if (!compressor->contract(kDimension).meets(ContractKind::unbiased)) {
      continue;
    }
    const std::uint64_t seed = draw_seed(number++);
    CAPTURE(family.name);
    CAPTURE(seed);
    Cluster cluster({.algorithm = "lead",
                     .compressor = compressor->spec(),
                     .dimension = kDimension,
                     .step = {.learning_rate = kRate},
                     .seed = seed});
    const Quadratic task(8, kDimension, seed);
    auto expected = cluster.mean();
    const Status status = cluster.driver.run(300, task);
    CAPTURE(status.message());
    REQUIRE(status.ok());
    for (int t = 0; t < 300; ++t) {
      task.descend(kRate, expected);
    }
    const auto mean = cluster.mean();
    for (std::size_t k = 0; k < kDimension; ++k) {
      CHECK(std::fabs(mean[k] - expected[k]) < 2e-3);
      double sum = 0;
      for (std::size_t rank = 0; rank < 8; ++rank) {
        sum += static_cast<double>(cluster.node<Lead>(rank).correction()[k]);
      }
      CHECK(std::fabs(sum) < 2e-3);
    }
  }
}

TEST_CASE("LEAD has no floor with unbiased messages of few bits, where DCD and CHOCO have one") {
  const auto floor_of = [](const std::string& algorithm, const std::string& compressor,
                           std::uint64_t seed) {
    const Uneven task(8, 16, seed);
    auto options = options_for(algorithm, compressor);
    options.seed = seed;
    Cluster cluster(options);
    const Status status = cluster.driver.run(1500, task);
    CAPTURE(status.message());
    REQUIRE(status.ok());
    return task.worst_excess(cluster.x);
  };
  for (std::uint32_t number = 40; number < 43; ++number) {
    const std::uint64_t seed = draw_seed(number);
    CAPTURE(seed);
    CHECK(floor_of("lead", "quant:8", seed) < 1e-8);
    CHECK(floor_of("lead", "quant:4", seed) < 1e-8);
    CHECK(floor_of("lead", "quant:2", seed) < 1e-7);
    CHECK(floor_of("lead:gamma=0.5,alpha=0.3", "quant:2", seed) < 1e-8);
    CHECK(floor_of("dcd", "quant:8", seed) > 1e-3);
    CHECK(floor_of("choco", "quant:8", seed) > 1e-3);
  }
}

TEST_CASE("LEAD takes unbiased compressors and SGD alone") {
  const auto refusal = [](const ClusterOptions& options) -> std::string {
    try {
      Cluster cluster(options);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  CHECK(refusal(options_for("lead", "sign")).find("whose contract is 'unbiased'") !=
        std::string::npos);
  CHECK(refusal(options_for("lead:gamma=1.5", "none")).find("gamma") != std::string::npos);
  CHECK(refusal(options_for("lead:alpha=0", "none")).find("alpha") != std::string::npos);
  auto options = options_for("lead", "none");
  std::vector<float> x(options.dimension);
  auto setup = node_setup(options, 0, x, cluster_topology(options));
  setup.step_rule = make_step_rule({.rule = "adam"});
  CHECK_THROWS_WITH_AS(make_algorithm("lead", std::move(setup)),
                       "step_rule: 'adam' is refused: lead is built on sgd; use sgd", Error);
}

}  // namespace sotto::test::lead_test
