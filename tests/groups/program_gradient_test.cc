#include <sotto/groups/program_gradient.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include <doctest/doctest.h>

#include <sotto/base/error.h>
#include <sotto/groups/vector_collective.h>

#include "runs.h"

namespace sotto::test::program_gradient_test {

namespace {

constexpr std::uint64_t kSeed = 41;
constexpr std::size_t kElements = 50;

/// The gradient of all that are along the axis `shard`: the mean of what drivers hand over.
class MeanOfShard final : public GradientProgram {
 public:
  explicit MeanOfShard(const ProgramNode& node)
      : sum_(make_all_reduce(node.member("shard"), {.elements = kElements})),
        share_(1.0F / static_cast<float>(node.grid().size("shard"))) {
    stages_ = {{"sum",
                [this](const RoundInput& input) {
                  gradient_.assign(input.gradient.begin(), input.gradient.end());
                  sum_->begin(gradient_);
                  return Status();
                },
                sum_.get(), 0},
               {"scale",
                [this](const RoundInput&) {
                  host_ops().scale(share_, gradient_);
                  return Status();
                },
                nullptr, 0}};
  }
  std::span<const ProgramStage> stages() const override { return stages_; }
  std::span<const float> gradient() const override { return gradient_; }

 private:
  std::unique_ptr<VectorCollective> sum_;
  float share_;
  std::vector<ProgramStage> stages_;
  std::vector<float> gradient_;
};

ProgramJob job_of(const GroupAlgorithm& algorithm) {
  ProgramJob job{.nodes = 6,
                 .grid = "data=3,shard=2",
                 .dimension = kElements,
                 .rounds = 8,
                 .seed = kSeed,
                 .build = {}};
  job.make = [algorithm](const ProgramSetup& setup) {
    return std::make_unique<ProgramGradient>(
        setup, [](const ProgramNode& node) { return std::make_unique<MeanOfShard>(node); },
        algorithm);
  };
  return job;
}

/// ∇ ½ ‖x − c_rank‖² with noise.
void quadratic(Rank rank, Round round, std::span<const float> x, std::span<float> g) {
  normal_input(kSeed, rank, round, g);
  for (std::size_t k = 0; k < g.size(); ++k) {
    g[k] = 0.01F * g[k] + x[k] - static_cast<float>(rank);
  }
}

}  // namespace

TEST_CASE("gradients of programs go through any algorithm on an axis, in every driver") {
  CAPTURE(kSeed);
  for (const GroupAlgorithm& algorithm :
       {GroupAlgorithm{.axis = "data"}, GroupAlgorithm{.axis = "data", .algorithm = "dpsgd"},
        GroupAlgorithm{.axis = "data", .algorithm = "dcd", .compressor = "quant:8"},
        GroupAlgorithm{.axis = "data", .algorithm = "choco", .compressor = "sign"}}) {
    CAPTURE(algorithm.algorithm);
    std::vector<std::vector<float>> first;
    for (const std::string& driver : drivers()) {
      CAPTURE(driver);
      const ProgramRun run = ProgramRunner(job_of(algorithm), quadratic).run(driver);
      for (const Status& status : run.statuses) {
        CAPTURE(status.message());
        REQUIRE(status.ok());
      }
      first = first.empty() ? run.models : first;
      CHECK(run.models == first);
    }
  }
}

TEST_CASE("all-reduce along one axis of means along the other is all-reduce over all") {
  CAPTURE(kSeed);
  const ProgramRun run = ProgramRunner(job_of({.axis = "data"}), quadratic).run("eager");
  REQUIRE(run.ok());
  std::vector<float> x(kElements);
  for (Round round = 0; round < 8; ++round) {
    std::vector<double> mean(kElements);
    std::vector<float> g(kElements);
    for (Rank rank = 0; rank < 6; ++rank) {
      quadratic(rank, round, x, g);
      for (std::size_t k = 0; k < kElements; ++k) {
        mean[k] += static_cast<double>(g[k]) / 6;
      }
    }
    for (std::size_t k = 0; k < kElements; ++k) {
      x[k] -= 0.1F * static_cast<float>(mean[k]);
    }
  }
  for (const auto& model : run.models) {
    CHECK(model == run.models[0]);
    for (std::size_t k = 0; k < kElements; ++k) {
      CHECK(static_cast<double>(model[k]) ==
            doctest::Approx(static_cast<double>(x[k])).epsilon(1e-5));
    }
  }
}

TEST_CASE("a program's gradient that is not finite is a fault that stays") {
  ProgramRunner runner({.nodes = 1, .dimension = kElements, .build = {}});
  const ProgramSetup setup = {
      .rank = 0, .nodes = 1, .grid = "data=1,shard=1", .parameters = runner.parameters(0)};
  /// Makes infinities.
  class Overflows final : public GradientProgram {
   public:
    std::span<const ProgramStage> stages() const override { return {}; }
    std::span<const float> gradient() const override { return gradient_; }

   private:
    std::vector<float> gradient_ =
        std::vector<float>(kElements, std::numeric_limits<float>::infinity());
  };
  ProgramGradient node(setup, [](const ProgramNode&) { return std::make_unique<Overflows>(); },
                       {.axis = "data"});
  node.begin_round();
  const std::vector<float> g(kElements, 1);
  const Status first = node.take_gradient(g);
  CHECK(first.fault() == Fault::non_finite);
  CHECK(first.message().find("gradient of the program") != std::string::npos);
  CHECK(node.accepts_gradient());
  CHECK(node.take_gradient(g).message() == first.message());
}

TEST_CASE("axes and algorithms that are none are refused") {
  const auto refused = [](const GroupAlgorithm& algorithm) {
    try {
      ProgramRunner(job_of(algorithm)).algorithm(0);
    } catch (const Error&) {
      return true;
    }
    return false;
  };
  CHECK(refused({.axis = "rows"}));
  CHECK(refused({.axis = "data", .algorithm = "none"}));
  CHECK(refused({.axis = "data", .algorithm = "dcd", .compressor = "sign"}));
  CHECK(!refused({.axis = "data", .algorithm = "dcd"}));
}

TEST_CASE("a fault of the algorithm in a group leaves the driver's exchange, and names the group") {
  ProgramJob job = job_of({.axis = "data", .step_rule = {.learning_rate = 1e30}});
  const ProgramRun run =
      ProgramRunner(job, [](Rank, Round, std::span<const float>, std::span<float> g) {
        std::ranges::fill(g, 3e38F);
      }).run("eager");
  bool told = false;
  for (const Status& status : run.statuses) {
    told = told || status.fault() == Fault::non_finite;
  }
  CHECK(told);
}

TEST_CASE("nodes whose algorithms in the group have other settings refuse each other") {
  for (const GroupAlgorithm& other :
       {GroupAlgorithm{.axis = "data", .step_rule = {.learning_rate = 0.01}},
        GroupAlgorithm{.axis = "data", .step_rule = {.momentum = 0.5}},
        // The text of a schedule does not have its length.
        GroupAlgorithm{.axis = "data", .step_rule = {.schedule = {.total = 10}}}}) {
    ProgramJob job = job_of({.axis = "data"});
    const auto same = job.make;
    const auto changed = job_of(other).make;
    job.make = [&](const ProgramSetup& setup) {
      return setup.rank == 4 ? changed(setup) : same(setup);
    };
    const ProgramRun run = ProgramRunner(job, quadratic).run("eager");
    bool refused = false;
    for (const Status& status : run.statuses) {
      refused = refused || status.fault() == Fault::unexpected;
      if (status.fault() == Fault::unexpected) {
        CHECK(status.message().find("in the group of nodes 0, 2, 4") != std::string::npos);
      }
    }
    CHECK(refused);
  }
}

TEST_CASE("a checkpoint of another algorithm in the group is refused") {
  ProgramRunner runner(job_of({.axis = "data"}));
  ByteBuffer state;
  runner.algorithm(1)->save(state);
  ProgramRunner other(job_of({.axis = "data", .step_rule = {.learning_rate = 0.3}}));
  ByteReader in(state.bytes());
  const Status status = other.algorithm(1)->load(in);
  CHECK(status.fault() == Fault::malformed);
  CHECK(status.message().find("another algorithm within the group") != std::string::npos);
}

}  // namespace sotto::test::program_gradient_test
