// What a run tells its observer.
#include <sotto/trainers/observer.h>

#include <algorithm>
#include <map>
#include <memory>
#include <numeric>
#include <set>
#include <stdexcept>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/trainers/run.h>
#include <sotto/trainers/tasks/quadratic.h>

#include "trainers/watcher.h"

namespace sotto::test::observer_test {

namespace {

constexpr int kNodes = 4;
constexpr std::size_t kDimension = 300;

TaskOfNode tasks() {
  auto problem = std::make_shared<QuadraticProblem>();
  problem->start.assign(kDimension, 0.5F);
  for (int i = 0; i < kNodes; ++i) {
    QuadraticProblem::Node node;
    for (std::size_t k = 0; k < kDimension; ++k) {
      node.h.push_back(0.1 + 0.001 * static_cast<double>(k));
      node.c.push_back(1 + 0.5 * i + 0.01 * static_cast<double>(k));
    }
    problem->nodes.push_back(std::move(node));
  }
  return [shared = std::shared_ptr<const QuadraticProblem>(problem)](Rank rank) {
    return std::make_unique<QuadraticTask>(shared, rank);
  };
}

RunOptions options_of(const char* algorithm, const char* compressor) {
  RunOptions options;
  options.optimizer.nodes = kNodes;
  options.optimizer.algorithm = algorithm;
  options.optimizer.compressor = compressor;
  options.optimizer.step_rule.learning_rate = 0.05;
  options.rounds = 20;
  options.eval_every = 5;
  return options;
}

RunResult completed(const RunOptions& options, Observer* observer) {
  auto result = run_threads(options, tasks(), {.observer = observer});
  CAPTURE(result.status().message());
  REQUIRE(result.ok());
  return *result;
}

/// Spans of one thread nest, and come in the order of their ends.
void check_nesting(std::vector<PhaseSpan> spans) {
  CHECK(std::is_sorted(spans.begin(), spans.end(),
                       [](const auto& a, const auto& b) { return a.until < b.until; }));
  for (const PhaseSpan& a : spans) {
    CHECK(a.from <= a.until);
    for (const PhaseSpan& b : spans) {
      const bool apart = a.until <= b.from || b.until <= a.from;
      const bool within =
          (a.from <= b.from && b.until <= a.until) || (b.from <= a.from && a.until <= b.until);
      CHECK((apart || within));
    }
  }
}

}  // namespace

TEST_CASE("who watches a run changes nothing of it") {
  for (const char* algorithm : {"dcd", "choco", "deepsqueeze", "pushsum"}) {
    CAPTURE(algorithm);
    const auto options = options_of(algorithm, "quant:4");
    Watcher watcher;
    watcher.phases = watcher.health = true;
    const RunResult watched = completed(options, &watcher);
    const RunResult alone = completed(options, nullptr);
    CHECK(watched.parameters_sha256 == alone.parameters_sha256);
    CHECK(watched.bytes_sent_per_node() == alone.bytes_sent_per_node());
    REQUIRE(watcher.starts.size() == 1);
    CHECK(watcher.starts[0].nodes == kNodes);
    CHECK(watcher.starts[0].rounds == 20);
    CHECK(watcher.starts[0].dimension == kDimension);
    CHECK(watcher.rounds == 20);
    REQUIRE(watcher.evaluations.size() == 4);
    CHECK(watcher.evaluations.back().point.loss == watched.final.loss);
    std::sort(watcher.nodes_ended.begin(), watcher.nodes_ended.end());
    CHECK(watcher.nodes_ended == std::vector<Rank>{0, 1, 2, 3});
  }
}

TEST_CASE("phases of each node's threads nest, with all that there are") {
  for (const bool overlap : {false, true}) {
    CAPTURE(overlap);
    auto options = options_of("dcd", "quant:8");
    options.optimizer.overlap = overlap;
    Watcher watcher;
    watcher.phases = true;
    completed(options, &watcher);
    std::map<std::pair<Rank, bool>, std::vector<PhaseSpan>> threads;
    std::map<RunPhase, int> seen;
    for (const PhaseSpan& span : watcher.spans) {
      ++seen[span.phase];
      if (span.phase != RunPhase::wire) {
        threads[{span.node, span.carrier}].push_back(span);
      } else {
        CHECK(span.bytes > 0);
      }
    }
    CHECK(threads.size() == (overlap ? 2 : 1) * kNodes);
    for (auto& [thread, spans] : threads) {
      check_nesting(std::move(spans));
    }
    for (const RunPhase phase : {RunPhase::round, RunPhase::gradient, RunPhase::encode,
                                 RunPhase::decode, RunPhase::wire}) {
      CHECK(seen[phase] == 20 * kNodes);
    }
    CHECK(seen[RunPhase::evaluation] == 4 * kNodes);
    if (!overlap) {
      CHECK(seen[RunPhase::wait] == 20 * kNodes);
    }
    CHECK(seen[RunPhase::checkpoint] == 0);
  }
}

TEST_CASE("a run that an exception ends is told to have ended for every node") {
  Watcher watcher;
  watcher.after_round = [](Round done) {
    if (done == 3) {
      throw std::runtime_error("the observer's disk is gone");
    }
  };
  CHECK_THROWS_WITH_AS(run_threads(options_of("dcd", "quant:8"), tasks(), {.observer = &watcher}),
                       "the observer's disk is gone", std::runtime_error);
  std::sort(watcher.nodes_ended.begin(), watcher.nodes_ended.end());
  CHECK(watcher.nodes_ended == std::vector<Rank>{0, 1, 2, 3});
}

TEST_CASE("evaluations tell how each node stands, when somebody wants to know") {
  Watcher quiet;
  completed(options_of("pushsum", "quant:4"), &quiet);
  CHECK(quiet.evaluations.back().nodes.empty());
  CHECK(quiet.spans.empty());

  Watcher watcher;
  watcher.health = true;
  const RunResult result = completed(options_of("pushsum", "quant:4"), &watcher);
  for (const RunEvaluation& evaluation : watcher.evaluations) {
    REQUIRE(evaluation.nodes.size() == kNodes);
    double mass = 0;
    for (const NodeStanding& node : evaluation.nodes) {
      mass += node.counters.mass.value();
      CHECK(node.compression.has_value());
      CHECK(node.compression->error > 0);
      CHECK(node.compression->error <= node.compression->bound);
      CHECK(node.wall_s >= node.compute_s);
    }
    CHECK(mass == doctest::Approx(kNodes).epsilon(1e-12));
  }
  const auto sent = result.bytes_sent_per_node();
  const NodeStanding& last = watcher.evaluations.back().nodes[2];
  CHECK(std::accumulate(last.traffic.begin(), last.traffic.end(), std::uint64_t{0},
                        [](auto sum, const LinkTraffic& link) { return sum + link.bytes; }) ==
        sent[2]);
}

TEST_CASE("the compression is measured shortly before an evaluation, and seldom") {
  auto options = options_of("choco", "sign");
  options.rounds = 200;
  options.eval_every = 10;
  Watcher watcher;
  watcher.health = true;
  completed(options, &watcher);
  std::set<double> samples;
  for (const RunEvaluation& evaluation : watcher.evaluations) {
    samples.insert(evaluation.nodes[0].compression.value().signal);
  }
  // Rounds 9, 79 and 149 of 200: the first that lie kMeasureEvery apart.
  CHECK(samples.size() == 3);
}

TEST_CASE("local steps are measured in a round that sends") {
  auto options = options_of("dcd", "quant:4");
  options.optimizer.communication_interval = 4;
  options.rounds = 24;
  options.eval_every = 6;
  Watcher watcher;
  watcher.health = true;
  completed(options, &watcher);
  CHECK(watcher.evaluations.front().nodes[0].compression.has_value());
}

}  // namespace sotto::test::observer_test
