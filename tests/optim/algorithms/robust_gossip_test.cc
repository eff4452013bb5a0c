// Robust gossip among nodes of which some lie.
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/base/error.h>
#include <sotto/base/frame.h>
#include <sotto/optim/algorithms/robust_gossip.h>
#include <sotto/optim/robust/attack.h>
#include <sotto/optim/wrappers/forwarding_algorithm.h>

#include "optim/cluster.h"

namespace sotto::test::robust_gossip_test {

namespace {

constexpr std::size_t kNodes = 8;
constexpr std::size_t kDimension = 40;

struct Job {
  std::string rule = "clipped:auto";
  std::string attack = {};
  std::vector<Rank> byzantine = {6, 7};
  bool oracle = true;
  std::string topology = "complete";
  Delivery delivery = Delivery::eager;
};

/// Nodes of robust gossip, some Byzantine, on a quadratic with noisy gradients.
class Attacked {
 public:
  explicit Attacked(const Job& job) : driver(job.delivery), x(kNodes, Model(kDimension, 1.0F)) {
    auto adversary = std::make_shared<Adversary>();
    if (!job.attack.empty()) {
      adversary->nodes = job.byzantine;
      adversary->attack = parse_attack(job.attack);
      if (job.oracle) {
        adversary->posted = [this](Rank rank) { return honest(rank).half(); };
        adversary->step = [this](Rank rank) { return honest(rank).step(); };
      }
    }
    const auto topology = make_topology(job.topology, kNodes, {.seed = 1});
    for (std::size_t rank = 0; rank < kNodes; ++rank) {
      AlgorithmSetup setup =
          node_setup({.algorithm = "robust", .step = {.learning_rate = 0.05, .momentum = 0.5}},
                     rank, x[rank], topology);
      setup.adversary = adversary;
      driver.add(make_algorithm("robust:" + job.rule, std::move(setup)));
    }
  }

  const RobustGossip& honest(Rank rank) const {
    return dynamic_cast<const RobustGossip&>(driver.node(static_cast<std::size_t>(rank)));
  }

  /// The mean of the honest nodes 0 … 5.
  std::vector<double> mean() const {
    std::vector<double> mean(kDimension);
    for (std::size_t rank = 0; rank < 6; ++rank) {
      for (std::size_t k = 0; k < kDimension; ++k) {
        mean[k] += double{x[rank][k]} / 6;
      }
    }
    return mean;
  }

  using Model = std::vector<float>;
  LockstepDriver driver;
  std::vector<Model> x;
};

/// ½ ‖x‖² for all nodes alike, with noise: the honest optimum is 0.
void noisy(Rank rank, Round round, std::span<const float> x, std::span<float> g) {
  RandomStream stream({.seed = 9, .rank = rank, .round = round, .purpose = Purpose::shuffle});
  for (std::size_t k = 0; k < x.size(); ++k) {
    g[k] = x[k] - 2.0F + static_cast<float>(0.2 * stream.normal());
  }
}

/// Mean squared distance of the honest mean from the optimum (2, 2, …).
double error_of(const Attacked& job) {
  double sum = 0;
  for (const double value : job.mean()) {
    sum += (value - 2) * (value - 2) / kDimension;
  }
  return sum;
}

}  // namespace

TEST_CASE("robust gossip with rule mean and no liar mixes the models plainly") {
  Attacked job({.rule = "mean"});
  REQUIRE(job.driver.run(60, noisy).ok());
  CHECK(error_of(job) < 1e-2);
  for (const auto& model : job.x) {
    for (std::size_t k = 0; k < kDimension; ++k) {
      CHECK(model[k] == doctest::Approx(job.x[0][k]).epsilon(1e-5));  // complete graph: they agree
    }
  }
}

TEST_CASE("two liars of eight: clipped:auto trains through every attack, the mean does not") {
  for (const std::string attack : {"alie:10", "ipm:0.5", "dissensus:3", "sign-flip", "noise:100"}) {
    CAPTURE(attack);
    for (const std::string rule : {"clipped:auto", "clipped:auto:1"}) {
      CAPTURE(rule);
      Attacked job({.rule = rule, .attack = attack});
      const Status status = job.driver.run(300, noisy);
      CAPTURE(status.message());
      REQUIRE(status.ok());
      CHECK(error_of(job) < 0.01);
    }
    Attacked plain({.rule = "mean", .attack = attack});
    const Status status = plain.driver.run(300, noisy);
    const double error = error_of(plain);
    CAPTURE(error);
    // Dissensus drives the nodes apart and leaves their mean about where it is.
    double apart = 0;
    for (std::size_t k = 0; k < kDimension; ++k) {
      apart = std::max(apart, std::abs(double{plain.x[0][k]} - double{plain.x[1][k]}));
    }
    CHECK((!status.ok() || error > 0.05 || apart > 1));
  }
}

TEST_CASE("a minority of liars is outvoted by the median, trimmed mean, Krum and their like") {
  for (const std::string rule :
       {"median", "trimmed-mean:2", "geometric-median", "krum:2", "multi-krum:2"}) {
    CAPTURE(rule);
    for (const std::string attack : {"sign-flip", "noise:100", "ipm:0.5"}) {
      CAPTURE(attack);
      Attacked job({.rule = rule, .attack = attack});
      const Status status = job.driver.run(300, noisy);
      CAPTURE(status.message());
      REQUIRE(status.ok());
      CHECK(error_of(job) < 0.2);
    }
  }
}

TEST_CASE("attackers that know only what they heard, as over a network, are tools as well") {
  for (const std::string attack : {"alie:10", "ipm:0.5", "dissensus:3", "near-ipm"}) {
    CAPTURE(attack);
    Attacked eager({.attack = attack, .oracle = false});
    Attacked late({.attack = attack, .oracle = false, .delivery = Delivery::late});
    REQUIRE(eager.driver.run(100, noisy).ok());
    REQUIRE(late.driver.run(100, noisy).ok());
    CHECK(eager.x == late.x);
    if (attack != "near-ipm") {  // which is made against this rule
      CHECK(error_of(eager) < 0.5);
    }
  }
}

TEST_CASE("attacks send what their papers say") {
  const std::vector<float> x = {1, 0};
  const std::vector<float> a = {2, 3};
  const std::vector<float> b = {3, 0};
  const std::vector<Witnessed> honest = {{a, 0.2}, {b, 0.1}};
  std::vector<float> out(2);
  const auto sent = [&](const char* attack) {
    craft(parse_attack(attack), x, {}, honest, 0.4, out);
    return out;
  };
  // Means 2 and 1, deviations 1 and √3.
  CHECK(sent("alie:2")[0] == doctest::Approx(0));
  CHECK(sent("alie:2")[1] == doctest::Approx(1 - 2 * std::sqrt(3.0)));
  CHECK(sent("ipm:0.5") == std::vector<float>{-1, -0.5F});
  // Σ W Δ = 0.2 (1, 3) + 0.1 (2, 0) = (0.4, 0.6)
  CHECK(sent("dissensus:2")[0] == doctest::Approx(-1));
  CHECK(sent("dissensus:2")[1] == doctest::Approx(-3));
  // Dissensus 1 undoes gossip: Σ_j W_ij Δ_j + 0.4 (m − x) = 0.
  CHECK(sent("dissensus:1")[0] == doctest::Approx(0));
  // At 1.5 times the nearest, which is b at 2, towards −mean; turned to stand on the step.
  CHECK(sent("near-ipm")[0] == doctest::Approx(1 - 3 * 2 / std::sqrt(5.0)));
  const std::vector<float> step = {-1, 0};
  craft(parse_attack("near-ipm"), x, step, honest, 0.4, out);
  CHECK(out[0] > 1);
  CHECK(std::hypot(out[0] - 1, out[1]) == doctest::Approx(3));
  for (const std::string spec : {"alie:10", "ipm:0.1", "dissensus:1.5", "near-ipm", "sign-flip",
                                 "noise:0.5", "label-flip"}) {
    CHECK(parse_attack(spec).spec() == spec);
  }
  for (const std::string spec : {"", "alie:", "alie:x", "alie:nan", "alie:-1", "ipm:inf",
                                 "sign-flip:1", "flip", "label-flip:2"}) {
    CAPTURE(spec);
    CHECK_THROWS_AS(parse_attack(spec), Error);
  }
}

namespace {

/// A node whose frames hold a NaN, or an infinity, or too few elements, by turns.
class Poisoner final : public ForwardingAlgorithm {
 public:
  using ForwardingAlgorithm::ForwardingAlgorithm;

  Result<bool> next_exchange(Exchange& out) override {
    const Round round = inner().round();
    auto more = inner().next_exchange(out);
    if (!more.ok() || !*more) {
      return more;
    }
    for (Send& send : out.sends) {
      frame_.assign(send.frame.begin(), send.frame.end());
      FrameHeader header = parse_frame(frame_)->header;
      const float bad = round % 3 == 0 ? std::numeric_limits<float>::quiet_NaN()
                                       : std::numeric_limits<float>::infinity();
      const auto bytes = std::as_bytes(std::span(&bad, 1));
      std::copy(bytes.begin(), bytes.end(), frame_.begin() + kFrameHeaderBytes + 8);
      header.payload_bytes -= round % 3 == 2 ? 4 : 0;
      send.frame = seal_frame(header, frame_);
    }
    return more;
  }

 private:
  std::vector<std::byte> frame_;
};

}  // namespace

TEST_CASE("a model with NaN, infinities or missing elements counts as not sent, and is counted") {
  for (const std::string rule : {"clipped:auto", "clipped:1", "median", "geometric-median",
                                 "krum:1", "multi-krum:1", "mean"}) {
    CAPTURE(rule);
    const auto topology = make_topology("complete", 4, {});
    std::vector<std::vector<float>> x(4, std::vector<float>(8, 1.0F));
    LockstepDriver driver;
    for (std::size_t rank = 0; rank < 4; ++rank) {
      AlgorithmSetup setup =
          node_setup({.algorithm = "robust", .nodes = 4, .dimension = 8}, rank, x[rank], topology);
      auto node = make_algorithm("robust:" + rule, std::move(setup));
      driver.add(rank == 3 ? std::make_unique<Poisoner>(std::move(node)) : std::move(node));
    }
    const Status status = driver.run(12, noisy);
    CAPTURE(status.message());
    REQUIRE(status.ok());
    for (std::size_t rank = 0; rank < 3; ++rank) {
      CHECK(std::all_of(x[rank].begin(), x[rank].end(),
                        [](float value) { return std::isfinite(value); }));
      CHECK(driver.node(rank).counters().bad_frames == 12);
    }
    CHECK(driver.node(3).counters().bad_frames == 0);
  }
}

TEST_CASE("robust rules are refused where nothing is known of them, and say why") {
  std::vector<float> x(4);
  const auto refusal = [&](const char* algorithm, const char* topology, bool allow) -> std::string {
    try {
      AlgorithmSetup setup =
          node_setup({.algorithm = algorithm, .nodes = 8}, 0, x, make_topology(topology, 8));
      setup.allow_contract_violation = allow;
      make_algorithm(algorithm, std::move(setup));
    } catch (const Error& error) {
      return error.what();
    }
    return {};
  };
  for (const bool allow : {false, true}) {
    const std::string directed = refusal("robust", "exponential", allow);
    CHECK(directed.find("topology") == 0);
    CHECK(directed.find("on directed graphs no rule is proven") != std::string::npos);
  }
  CHECK(refusal("robust:medium", "ring", false).find("rule: 'medium'") == 0);
  CHECK(refusal("robust:median", "ring", false).empty());
}

}  // namespace sotto::test::robust_gossip_test
