#include <sotto/trainers/tasks/quadratic.h>

#include <cmath>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/base/error.h>
#include <sotto/trainers/tasks/task_registry.h>

#include "support/scratch.h"

namespace sotto::test::quadratic_test {

using test::contains;

namespace {

constexpr const char* kTwoNodes =
    R"({"start": [1, -2], "nodes": [{"h": [1, 0.5], "c": [3, 0]}, {"h": [3, 1.5], "c": [-1, 4]}]})";

std::string refusal_of(const std::string& json) {
  const test::Scratch scratch;
  const auto file = scratch.write("problem.json", json);
  const std::string message = test::refusal([&] { load_quadratic(file); });
  CHECK(contains(message, "problem.json"));
  return message;
}

}  // namespace

TEST_CASE("objective and gradient are the formulas', and every node starts from start") {
  const test::Scratch scratch;
  const auto data = load_task("quadratic:" + scratch.write("q.json", kTwoNodes).string());
  CHECK(data->nodes() == 2);
  const TaskFactory tasks(data, {.nodes = 2});
  for (Rank rank = 0; rank < 2; ++rank) {
    const auto task = tasks.make(rank);
    CHECK(task->dimension() == 2);
    CHECK(task->rounds_per_epoch() == 1);
    std::vector<float> x(2);
    task->initialize(x, 99);
    CHECK(x == std::vector<float>{1, -2});
    std::vector<float> gradient(2);
    const double loss = task->loss_and_gradient(5, x, gradient);
    CHECK(gradient == (rank == 0 ? std::vector<float>{-2, -1} : std::vector<float>{6, -9}));
    CHECK(loss == (rank == 0 ? 3.0 : 33.0));
    const Evaluation evaluation = task->evaluate(x);
    CHECK(evaluation.loss == 18.0);
    CHECK(std::isnan(evaluation.accuracy));
  }
}

TEST_CASE("gradient descent on the average reaches the known optimum") {
  const test::Scratch scratch;
  const auto problem = load_quadratic(scratch.write("q.json", kTwoNodes));
  QuadraticTask one(problem, 0);
  QuadraticTask two(problem, 1);
  std::vector<float> x(2);
  std::vector<float> first(2);
  std::vector<float> second(2);
  one.initialize(x, 0);
  for (Round round = 0; round < 200; ++round) {
    one.loss_and_gradient(round, x, first);
    two.loss_and_gradient(round, x, second);
    for (std::size_t k = 0; k < 2; ++k) {
      x[k] -= 0.2F * (first[k] + second[k]) / 2;
    }
  }
  // Σ h c / Σ h in each coordinate.
  CHECK(x[0] == doctest::Approx(0));
  CHECK(x[1] == doctest::Approx(3));
}

TEST_CASE("the job must have the file's nodes, and neither a model nor a partition") {
  const test::Scratch scratch;
  const auto data = load_task("quadratic:" + scratch.write("q.json", kTwoNodes).string());
  CHECK(contains(test::refusal([&] { TaskFactory(data, {.nodes = 3}); }), "2 node"));
  CHECK_THROWS_AS(TaskFactory(data, {.model = "softmax", .nodes = 2}), Error);
  CHECK_THROWS_AS(TaskFactory(data, {.partition = "label", .nodes = 2}), Error);
}

TEST_CASE("damaged problems are refused with the place") {
  CHECK(contains(refusal_of(""), "json: parse error"));
  CHECK_FALSE(contains(refusal_of("{]"), "json.exception"));
  CHECK(contains(refusal_of("[1, 2]"), "start"));
  CHECK(contains(refusal_of(R"({"start": [1]})"), "nodes"));
  CHECK(contains(refusal_of(R"({"start": [], "nodes": []})"), "start"));
  CHECK(contains(refusal_of(R"({"start": [1], "nodes": []})"), "nodes"));
  CHECK(contains(refusal_of(R"({"start": [1], "nodes": {}})"), "nodes"));
  CHECK(contains(refusal_of(R"({"start": [1], "nodes": [1]})"), "nodes[0]"));
  CHECK(contains(refusal_of(R"({"start": [1], "nodes": [{"h": [1]}]})"), "\"c\""));
  CHECK(
      contains(refusal_of(R"({"start": [1], "nodes": [{"h": [1, 2], "c": [1]}]})"), "nodes[0].h"));
  CHECK(contains(refusal_of(R"({"start": [1, "2"], "nodes": [1]})"), "start[1]"));
  CHECK(contains(refusal_of(R"({"start": [1], "nodes": [{"h": [null], "c": [1]}]})"),
                 "nodes[0].h[0]"));
  CHECK(contains(refusal_of(R"({"start": [1e39], "nodes": [{"h": [1], "c": [1]}]})"), "32-bit"));
  CHECK(contains(refusal_of(R"({"start": [1e999], "nodes": []})"), "1e999"));
  CHECK(contains(refusal_of(std::string(100000, '[')), "deeper"));
  const std::string good = kTwoNodes;
  for (std::size_t length = 0; length < good.size(); ++length) {
    refusal_of(good.substr(0, length));
  }
  CHECK(contains(test::refusal([] { load_quadratic("/nonexistent/q.json"); }), "no such file"));
}

}  // namespace sotto::test::quadratic_test
