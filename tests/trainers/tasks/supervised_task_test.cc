#include <sotto/trainers/tasks/supervised_task.h>

#include <cmath>
#include <numeric>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/base/error.h>
#include <sotto/trainers/tasks/task_registry.h>

#include "trainers/tasks/reference_models.h"

namespace sotto::test::supervised_task_test {

namespace {

std::vector<float> start_of(const Task& task, std::uint64_t seed) {
  std::vector<float> x(task.dimension());
  task.initialize(x, seed);
  return x;
}

/// Plain SGD of one node; returns the accuracy on the test set.
double train(const std::shared_ptr<const TaskData>& data, const char* model, int epochs, float lr) {
  const TaskFactory tasks(data, {.model = model, .batch = 32, .seed = 1});
  const auto task = tasks.make(0);
  auto x = start_of(*task, 1);
  std::vector<float> gradient(x.size());
  const Round rounds = static_cast<Round>(epochs) * task->rounds_per_epoch();
  for (Round round = 0; round < rounds; ++round) {
    task->loss_and_gradient(round, x, gradient);
    for (std::size_t i = 0; i < x.size(); ++i) {
      x[i] -= lr * gradient[i];
    }
  }
  return task->evaluate(x).accuracy;
}

std::shared_ptr<const Dataset> tiny_dataset() {
  std::vector<float> values(12 * 3);
  std::vector<std::int32_t> labels(12);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = std::sin(static_cast<float>(i));
    labels[i / 3] = static_cast<std::int32_t>(i / 3 % 4);
  }
  return std::make_shared<const Dataset>("tiny", 4,
                                         std::make_unique<DenseExamples>(3, values, labels),
                                         std::make_unique<DenseExamples>(3, values, labels));
}

SupervisedTask tiny_task(std::size_t batch) {
  std::vector<std::uint32_t> shard(12);
  std::iota(shard.begin(), shard.end(), 0U);
  return {tiny_dataset(), make_model("mlp:5", {.features = 3, .classes = 4, .image = {}}),
          Sampler(shard, batch, 0, 0), 1};
}

}  // namespace

TEST_CASE("loss and gradient are the mean cross-entropy's") {
  SupervisedTask task = tiny_task(12);  // a batch is the whole set
  const auto x = start_of(task, 3);
  std::vector<float> gradient(x.size());
  const double loss = task.loss_and_gradient(0, x, gradient);
  CHECK(loss == doctest::Approx(task.evaluate(x).loss).epsilon(1e-9));

  const auto data = tiny_dataset();
  const ModelInput input{.features = 3, .classes = 4, .image = {}};
  const auto model = make_model("mlp:5", input);
  std::vector<double> rows;
  for (std::size_t i = 0; i < 12; ++i) {
    std::vector<float> row(3);
    data->train().copy_row(i, row);
    rows.insert(rows.end(), row.begin(), row.end());
  }
  const auto reference_loss = [&](const std::vector<double>& parameters) {
    const auto scores = test::reference_scores(*model, input, parameters, rows, 12);
    double sum = 0;
    for (std::size_t i = 0; i < 12; ++i) {
      double total = 0;
      for (std::size_t k = 0; k < 4; ++k) {
        total += std::exp(scores[4 * i + k]);
      }
      sum += std::log(total) - scores[4 * i + static_cast<std::size_t>(data->train().labels()[i])];
    }
    return sum / 12;
  };
  auto at = test::widen(x);
  CHECK(loss == doctest::Approx(reference_loss(at)).epsilon(1e-6));
  for (std::size_t i = 0; i < at.size(); ++i) {
    const double here = at[i];
    at[i] = here + 1e-6;
    const double above = reference_loss(at);
    at[i] = here - 1e-6;
    const double below = reference_loss(at);
    at[i] = here;
    CHECK(std::abs((above - below) / 2e-6 - static_cast<double>(gradient[i])) < 1e-6);
  }
}

TEST_CASE("huge scores do not overflow the loss, and a NaN shows in loss and gradient") {
  SupervisedTask task = tiny_task(4);
  auto x = start_of(task, 3);
  std::vector<float> gradient(x.size());
  for (float& value : x) {
    value *= 1e15F;
  }
  CHECK(std::isfinite(task.loss_and_gradient(0, x, gradient)));
  CHECK(std::isfinite(task.evaluate(x).loss));
  x.back() = std::nanf("");
  CHECK(std::isnan(task.loss_and_gradient(0, x, gradient)));
  CHECK(std::isnan(gradient.back()));
  CHECK(std::isnan(task.evaluate(x).loss));
}

TEST_CASE("gradients are the same for two objects and after an evaluation") {
  SupervisedTask one = tiny_task(5);
  SupervisedTask two = tiny_task(5);
  const auto x = start_of(one, 8);
  std::vector<float> first(x.size());
  std::vector<float> second(x.size());
  for (const Round round : {Round{0}, Round{3}, Round{1}}) {
    one.loss_and_gradient(round, x, first);
    two.evaluate(x);
    two.loss_and_gradient(7, x, second);
    two.loss_and_gradient(round, x, second);
    CHECK(first == second);
  }
}

TEST_CASE("on digits softmax is good and a small MLP is better") {
  const auto data = load_task("digits");
  CHECK(data->dataset->train().size() == 6000);
  CHECK(data->dataset->test().size() == 1000);
  CHECK(data->dataset->features() == 784);
  CHECK(data->dataset->classes() == 10);
  const double softmax = train(data, "softmax", 5, 0.1F);
  const double mlp = train(data, "mlp:64", 8, 0.2F);
  INFO("softmax ", softmax, ", mlp ", mlp);
  CHECK(softmax > 0.85);
  CHECK(softmax < 0.96);
  CHECK(mlp > 0.95);
  CHECK(mlp > softmax);
}

TEST_CASE("digits are deterministic, differ between seeds and sets, and lie in 0 … 1") {
  const auto one = load_task("digits,train=40,test=40,seed=5");
  const auto two = load_task("digits,test=40,train=50,seed=5");
  const auto other = load_task("digits,train=40,test=40,seed=6");
  std::vector<float> a(784);
  std::vector<float> b(784);
  for (std::size_t row = 0; row < 40; ++row) {
    one->dataset->train().copy_row(row, a);
    two->dataset->train().copy_row(row, b);
    CHECK(a == b);
    CHECK(one->dataset->train().labels()[row] == two->dataset->train().labels()[row]);
    other->dataset->train().copy_row(row, b);
    CHECK(a != b);
    one->dataset->test().copy_row(row, b);
    CHECK(a != b);
    for (const float value : a) {
      CHECK((value >= 0 && value <= 1));
    }
  }
}

}  // namespace sotto::test::supervised_task_test
