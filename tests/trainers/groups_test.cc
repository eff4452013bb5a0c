// Groups of nodes over real transports and in runs that stop and go on.
#include <memory>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/base/error.h>
#include <sotto/comm/transport.h>
#include <sotto/trainers/run.h>
#include <sotto/trainers/tasks/quadratic.h>

#include "support/scratch.h"
#include "support/skip.h"
#include "trainers/nodes.h"

namespace sotto::test::groups_test {

namespace {

constexpr int kNodes = 6;
constexpr std::size_t kDimension = 47;
constexpr Round kRounds = 13;
const std::vector<std::vector<Rank>> kGroups = {{0, 4}, {1, 3}, {2, 5}};

ClusterOptions cluster_options(const std::string& algorithm, Round interval) {
  return {.algorithm = algorithm,
          .nodes = kNodes,
          .groups = kGroups,
          .dimension = kDimension,
          .step = {.learning_rate = 0.02, .momentum = 0.5},
          .communication_interval = interval};
}

OptimizerOptions optimizer_options(const std::string& algorithm, Round interval) {
  auto options = options_for(kNodes, make_memory_store());
  choose(options, algorithm_info(algorithm));
  options.algorithm = algorithm;
  options.groups = kGroups;
  options.step_rule = {.learning_rate = 0.02, .momentum = 0.5};
  options.communication_interval = interval;
  return options;
}

void check_transport(const std::string& transport, bool overlap) {
  for (const char* algorithm : {"dpsgd", "dcd", "choco:eta=0.3", "pushsum", "qmean", "allreduce"}) {
    for (const Round interval : {Round{1}, Round{3}}) {
      CAPTURE(std::string(algorithm));
      CAPTURE(interval);
      const Quadratic task(kNodes, kDimension, 3, 0.1);
      Cluster cluster(cluster_options(algorithm, interval));
      auto x = cluster.x;
      REQUIRE(cluster.driver.run(kRounds, task).ok());
      auto options = optimizer_options(algorithm, interval);
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

TEST_CASE("groups give the bits of the lock-step driver over threads") {
  check_transport("inproc", false);
  check_transport("inproc", true);
}

TEST_CASE("groups give the bits of the lock-step driver over sockets") {
  int taken = 0;
  for (const TransportInfo& info : transports()) {
    if ((info.name == "zmq" || info.name == "gloo") && info.available) {
      check_transport(std::string(info.name), true);
      ++taken;
    }
  }
  if (taken == 0) {
    SOTTO_SKIP("built without ZeroMQ and Gloo");
  }
}

TEST_CASE("a run in groups that was stopped goes on bit for bit") {
  for (const Round interval : {Round{1}, Round{3}}) {
    CAPTURE(interval);
    const Scratch scratch;
    RunOptions options;
    options.optimizer = optimizer_options("choco", interval);
    options.rounds = 20;
    const auto completed = [&] {
      auto result = run_threads(options, tasks(), {});
      CAPTURE(result.status().message());
      REQUIRE(result.ok());
      return *result;
    };
    const RunResult whole = completed();
    options.checkpoint = scratch.path().string();
    options.rounds = 10;
    (void)completed();
    options.rounds = 20;
    options.resume = true;
    CHECK(completed().parameters_sha256 == whole.parameters_sha256);
  }
}

TEST_CASE("nodes agree on their groups") {
  std::vector<float> x(kDimension);
  const auto agreement = [&](std::vector<std::vector<Rank>> groups) {
    auto options = optimizer_options("dpsgd", 1);
    options.groups = std::move(groups);
    return Optimizer(options, x).agreement();
  };
  const std::string here = agreement(kGroups);
  CHECK(first_difference(here, agreement({{5, 2}, {4, 0}, {3, 1}})).empty());
  CHECK(first_difference(here, agreement({{0, 1}, {2, 3}, {4, 5}})) ==
        "groups is 0,4; 1,3; 2,5 here and 0,1; 2,3; 4,5 there");
}

TEST_CASE("a graph that does not fit the groups is refused") {
  std::vector<float> x(kDimension);
  auto options = optimizer_options("dpsgd", 1);
  options.topology = "torus:2x3";
  CHECK_THROWS_AS(Optimizer(options, x), Error);
}

}  // namespace sotto::test::groups_test
