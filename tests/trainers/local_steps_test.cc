// Local steps over real transports, and in runs that stop and go on between two exchanges.
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/comm/transport.h>
#include <sotto/trainers/run.h>
#include <sotto/trainers/tasks/quadratic.h>

#include "support/scratch.h"
#include "support/skip.h"
#include "trainers/nodes.h"

namespace sotto::test::local_steps_test {

namespace {

constexpr int kNodes = 4;
constexpr std::size_t kDimension = 60;
constexpr Round kInterval = 3;
constexpr Round kRounds = 26;  // ends between two exchanges

ClusterOptions cluster_options(const AlgorithmInfo& info) {
  return {.algorithm = std::string(info.name),
          .nodes = kNodes,
          .dimension = kDimension,
          .step = {.learning_rate = 0.02, .momentum = 0.5},
          .communication_interval = kInterval,
          .outer_step = StepRuleOptions{.learning_rate = 0.7, .momentum = 0.5, .nesterov = true}};
}

OptimizerOptions optimizer_options(const AlgorithmInfo& info) {
  const ClusterOptions cluster = cluster_options(info);
  auto options = options_for(kNodes, make_memory_store());
  choose(options, info);
  options.step_rule = cluster.step;
  options.communication_interval = kInterval;
  options.outer_step_rule = outer(cluster, info);
  options.lazy = info.eigenvalues_above > -1;
  return options;
}

/// Other ways to exchange what local steps moved.
struct Variant {
  Streaming streaming = {};
  bool outer_after_mixing = false;
};

std::vector<Variant> variants_of(const AlgorithmInfo& info) {
  std::vector<Variant> variants(1);
  if (info.takes_fragments()) {
    variants.push_back({.streaming = {.fragments = 3, .mix = {.own = 0.5}}});
    variants.push_back({.streaming = {.delay = 2, .mix = {.carry = true}}});
    variants.push_back({.streaming = {.delay = 1}});
  }
  if (info.takes_outer_after_mixing()) {
    variants.push_back({.outer_after_mixing = true});
  }
  return variants;
}

void check_variant(const AlgorithmInfo& info, const Variant& variant, const std::string& transport,
                   bool overlap) {
  const Quadratic task(kNodes, kDimension, 3, 0.1);
  ClusterOptions lockstep = cluster_options(info);
  lockstep.streaming = variant.streaming;
  lockstep.outer_after_mixing = variant.outer_after_mixing;
  Cluster cluster(lockstep);
  auto x = cluster.x;
  REQUIRE(cluster.driver.run(kRounds, task).ok());
  auto options = optimizer_options(info);
  options.streaming = variant.streaming;
  options.outer_after_mixing = variant.outer_after_mixing;
  options.transport = transport;
  options.overlap = overlap;
  const auto statuses = play(kNodes, [&](Rank rank) {
    return train(options, rank, kRounds, task, x[static_cast<std::size_t>(rank)]);
  });
  for (const Status& status : statuses) {
    CAPTURE(status.message());
    CHECK(status.ok());
  }
  CHECK(x == cluster.x);
}

void check_transport(const std::string& transport, bool overlap) {
  for (const AlgorithmInfo& info : algorithms()) {
    CAPTURE(info.name);
    for (const Variant& variant : variants_of(info)) {
      CAPTURE(variant.streaming.fragments);
      CAPTURE(variant.streaming.delay);
      CAPTURE(variant.outer_after_mixing);
      check_variant(info, variant, transport, overlap);
    }
  }
}

TaskOfNode tasks() {
  auto problem = std::make_shared<QuadraticProblem>();
  problem->start.assign(kDimension, 0.5F);
  for (int i = 0; i < kNodes; ++i) {
    problem->nodes.push_back({.h = std::vector<double>(kDimension, 0.3 + 0.2 * i),
                              .c = std::vector<double>(kDimension, 1.0 + i)});
  }
  return [problem](Rank rank) { return std::make_unique<QuadraticTask>(problem, rank); };
}

}  // namespace

TEST_CASE("every algorithm gives the bits of the lock-step driver over threads") {
  check_transport("inproc", false);
  check_transport("inproc", true);
}

TEST_CASE("every algorithm gives the bits of the lock-step driver over ZeroMQ") {
  for (const TransportInfo& info : transports()) {
    if (info.name == "zmq" && !info.available) {
      SOTTO_SKIP("built without ZeroMQ");
    }
  }
  check_transport("zmq", true);
}

TEST_CASE("a run that was stopped between two exchanges goes on bit for bit") {
  for (const AlgorithmInfo& info : algorithms()) {
    for (const Variant& variant : variants_of(info)) {
      CAPTURE(info.name);
      CAPTURE(variant.streaming.fragments);
      CAPTURE(variant.streaming.delay);
      const Scratch scratch;
      RunOptions options;
      options.optimizer = optimizer_options(info);
      options.optimizer.streaming = variant.streaming;
      options.optimizer.outer_after_mixing = variant.outer_after_mixing;
      options.rounds = 20;
      const auto completed = [&] {
        auto result = run_threads(options, tasks(), {});
        CAPTURE(result.status().message());
        REQUIRE(result.ok());
        return *result;
      };
      const RunResult whole = completed();
      options.checkpoint = scratch.path().string();
      options.rounds = 10;  // with a delay a fragment is under way
      (void)completed();
      options.rounds = 20;
      options.resume = true;
      CHECK(completed().parameters_sha256 == whole.parameters_sha256);
    }
  }
}

TEST_CASE("nodes agree on the interval and the outer rule") {
  std::vector<float> x(kDimension);
  const auto agreement = [&](auto change) {
    auto options = optimizer_options(algorithm_info("dpsgd"));
    change(options);
    return Optimizer(options, x).agreement();
  };
  using Options = OptimizerOptions&;
  const std::string here = agreement([](Options) {});
  CHECK(first_difference(here, agreement([](Options o) { o.communication_interval = 5; })) ==
        "communication-interval is 3 here and 5 there");
  CHECK(first_difference(here, agreement([](Options o) { o.outer_step_rule->nesterov = false; })) ==
        "outer-nesterov is true here and false there");
  CHECK_FALSE(
      first_difference(here, agreement([](Options o) { o.outer_after_mixing = true; })).empty());
}

}  // namespace sotto::test::local_steps_test
