// Regression: its loss and gradient, R² and RMSE by their definitions, and least squares as the
// optimum.
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/base/philox.h>
#include <sotto/trainers/data/loaders.h>
#include <sotto/trainers/data/partition.h>
#include <sotto/trainers/tasks/task_registry.h>

#include "support/scratch.h"

namespace sotto::test::regression_test {

using test::contains;

namespace {

constexpr std::uint64_t kSeed = 7;

/// y = 40 + 3 a − 2 b and z = 1000 b, with some noise.
std::string houses(double noise) {
  RandomStream random({.seed = kSeed, .purpose = Purpose::test});
  std::string content = "a,b,y,z\n";
  for (int i = 0; i < 250; ++i) {
    const double a = 5 + 10 * random.normal();
    const double b = random.normal();
    content += fmt::format("{},{},{},{}\n", a, b, 40 + 3 * a - 2 * b + noise * random.normal(),
                           1000 * b + 100 * noise * random.normal());
  }
  return content;
}

std::shared_ptr<const TaskData> load(const std::string& content, const std::string& more) {
  const test::Scratch scratch;
  return load_task("csv:" + scratch.write("houses.csv", content).string() + more);
}

std::vector<float> trained(Task& task, Round rounds, float rate) {
  std::vector<float> x(task.dimension());
  std::vector<float> gradient(x.size());
  task.initialize(x, kSeed);
  for (Round round = 0; round < rounds; ++round) {
    task.loss_and_gradient(round, x, gradient);
    for (std::size_t i = 0; i < x.size(); ++i) {
      x[i] -= rate * gradient[i];
    }
  }
  return x;
}

}  // namespace

TEST_CASE("linear regression finds the coefficients, in the file's units") {
  const auto data = load(houses(0), ",target=y,drop=z,regression");
  CHECK(data->regression());
  CHECK(data->default_model == "linear");
  CHECK(data->dataset->outputs() == 1);
  CHECK(data->dataset->names().targets == std::vector<std::string>{"y"});
  const TaskFactory tasks(data, {.batch = 50});
  const auto task = tasks.make(0);
  REQUIRE(task->dimension() == 3);
  const auto x = trained(*task, 800, 0.2F);
  const auto& scaling = data->dataset->scaling();
  const double deviation = 1 / data->dataset->target_scaling()[0].factor;
  CHECK(static_cast<double>(x[0]) * scaling[0].factor * deviation ==
        doctest::Approx(3).epsilon(1e-3));
  CHECK(static_cast<double>(x[1]) * scaling[1].factor * deviation ==
        doctest::Approx(-2).epsilon(1e-2));
  const Evaluation found = task->evaluate(x);
  CHECK(found.r2 > 0.9999);
  CHECK(std::isnan(found.accuracy));
}

TEST_CASE("loss, R² and RMSE are what their definitions say, for one target and for two") {
  for (const char* more : {",target=y,regression", ",target=y,target=z,regression"}) {
    CAPTURE(more);
    const auto data = load(houses(2), more);
    const Dataset& set = *data->dataset;
    const std::size_t outputs = set.outputs();
    const TaskFactory tasks(data, {.model = "mlp:3"});
    const auto task = tasks.make(0);
    std::vector<float> zero(task->dimension());
    // A model that knows nothing gives the training rows' mean, 0.
    const Evaluation found = task->evaluate(zero);
    double loss = 0;
    double squares = 0;
    double r2 = 0;
    for (std::size_t k = 0; k < outputs; ++k) {
      double sum = 0;
      double errors = 0;
      const auto rows = static_cast<double>(set.test().size());
      for (std::size_t i = 0; i < set.test().size(); ++i) {
        const auto y = static_cast<double>(set.test().targets()[i * outputs + k]);
        sum += y;
        errors += y * y;
      }
      double spread = 0;
      for (std::size_t i = 0; i < set.test().size(); ++i) {
        const double away = static_cast<double>(set.test().targets()[i * outputs + k]) - sum / rows;
        spread += away * away;
      }
      const double count = rows * static_cast<double>(outputs);
      loss += errors / 2 / count;
      squares += errors / std::pow(set.target_scaling()[k].factor, 2) / count;
      r2 += (1 - errors / spread) / static_cast<double>(outputs);
    }
    CHECK(found.loss == doctest::Approx(loss));
    CHECK(found.rmse == doctest::Approx(std::sqrt(squares)));
    CHECK(found.r2 == doctest::Approx(r2));
  }
}

TEST_CASE("the gradient of a regression is that of its loss") {
  const auto data = load(houses(2), ",target=y,target=z,regression");
  const TaskFactory tasks(data, {.model = "mlp:4", .batch = 20});
  const auto task = tasks.make(0);
  std::vector<float> x(task->dimension());
  std::vector<float> gradient(x.size());
  std::vector<float> unused(x.size());
  task->initialize(x, kSeed);
  (void)task->loss_and_gradient(3, x, gradient);
  for (std::size_t i = 0; i < x.size(); ++i) {
    constexpr float kStep = 1e-2F;
    std::vector<float> moved = x;
    moved[i] += kStep;
    const double up = task->loss_and_gradient(3, moved, unused);
    moved[i] -= 2 * kStep;
    const double down = task->loss_and_gradient(3, moved, unused);
    CHECK(static_cast<double>(gradient[i]) ==
          doctest::Approx((up - down) / (2 * static_cast<double>(kStep))).epsilon(0.05));
  }
}

TEST_CASE("sparse rows have targets too") {
  const test::Scratch scratch;
  std::string rows;
  for (int i = 0; i < 100; ++i) {
    rows += fmt::format("{} 1:{} 3:{}\n", 2.5 * (i % 7) - 0.5 * (i % 5), i % 7, i % 5);
  }
  const std::string spec = "libsvm:" + scratch.write("rows.svm", rows).string();
  CHECK(contains(test::refusal([&] { load_task(spec); }), spec + ",regression"));
  const auto data = load_task(spec + ",regression");
  const TaskFactory tasks(data, {});
  const auto task = tasks.make(0);
  CHECK(task->evaluate(trained(*task, 2000, 0.05F)).r2 > 0.99);
}

TEST_CASE("what is for classes alone is refused for a regression, with what would do") {
  const auto data = load(houses(1), ",target=y,regression");
  const auto told = [&](const TaskOptions& options) {
    return test::refusal([&] { TaskFactory(data, options); });
  };
  CHECK(contains(told({.model = "softmax"}), "use linear or mlp"));
  CHECK(contains(told({.model = "cnn"}), "use linear or mlp"));
  CHECK(contains(told({.model = "transformer"}), "use linear or mlp"));
  for (const char* partition : {"dirichlet:0.1", "label"}) {
    CHECK(contains(told({.partition = partition}), "take iid"));
  }
  const std::string crowd = told({.nodes = 400});
  CHECK(contains(crowd, "take fewer nodes"));
  CHECK_FALSE(contains(crowd, "digits"));
  CHECK(contains(test::refusal([&] { load("a,b\n1,2\n2,2\n3,2\n", ",regression"); }),
                 "nothing to predict"));
  CHECK(contains(test::refusal([&] { load("a,b\n1,x\n2,y\n3,z\n", ",regression"); }),
                 "targets of a regression are numbers"));
  CHECK(contains(test::refusal([&] { load(houses(1), ",target=y,target=z"); }), ",regression"));
  CHECK(
      contains(test::refusal([&] { load(houses(1), ",target=y,target=y,regression"); }), "twice"));
}

TEST_CASE("an attacker on a regression trains on targets that are turned round") {
  const auto data = load(houses(0), ",target=y,drop=z,regression");
  const TaskFactory tasks(data, {.batch = 50, .nodes = 2, .byzantine = {1}, .flip_labels = true});
  const auto honest = tasks.make(0);
  const auto liar = tasks.make(1);
  CHECK(honest->evaluate(trained(*honest, 300, 0.2F)).r2 > 0.99);
  CHECK(liar->evaluate(trained(*liar, 300, 0.2F)).r2 < -1);
}

}  // namespace sotto::test::regression_test
