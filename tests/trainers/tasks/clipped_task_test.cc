// The data's side of DP-SGD: Poisson samples, and gradients that no example moves by more than a
// bound.
#include <sotto/trainers/tasks/clipped_task.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/trainers/tasks/model.h>
#include <sotto/trainers/tasks/task_registry.h>

#include "support/scratch.h"

namespace sotto::test::clipped_task_test {

namespace {

std::vector<std::uint32_t> shard_of(std::size_t count) {
  std::vector<std::uint32_t> shard(count);
  std::iota(shard.begin(), shard.end(), 0U);
  return shard;
}

std::vector<std::uint32_t> batch_of(PoissonSampler& sampler, Round round) {
  const auto batch = sampler.batch(round);
  return {batch.begin(), batch.end()};
}

std::vector<float> gradient_of(Task& task, Round round, const std::vector<float>& x) {
  std::vector<float> gradient(x.size());
  (void)task.loss_and_gradient(round, x, gradient);
  return gradient;
}

}  // namespace

TEST_CASE("each example is in a Poisson sample with the same probability, on its own") {
  constexpr std::size_t kExamples = 50;
  constexpr Round kRounds = 20'000;
  constexpr double kRate = 0.13;
  constexpr std::uint64_t kSeed = 3;
  CAPTURE(kSeed);
  PoissonSampler sampler(shard_of(kExamples), kRate, SecretKey::for_tests(kSeed, 0));
  std::vector<double> hits(kExamples);
  double both = 0;
  double size = 0;
  double size_squared = 0;
  for (Round round = 0; round < kRounds; ++round) {
    const auto batch = batch_of(sampler, round);
    for (const std::uint32_t example : batch) {
      hits[example] += 1;
    }
    const auto holds = [&](std::uint32_t k) {
      return std::count(batch.begin(), batch.end(), k) > 0;
    };
    both += holds(4) && holds(9) ? 1 : 0;
    const auto count = static_cast<double>(batch.size());
    size += count / kRounds;
    size_squared += count * count / kRounds;
  }
  // Within 5 standard errors: by chance one of the 52 fails with 3 × 10^-5.
  for (const double count : hits) {
    CHECK(std::abs(count - kRate * kRounds) < 5 * std::sqrt(kRate * (1 - kRate) * kRounds));
  }
  const double pair = kRate * kRate;
  CHECK(std::abs(both - pair * kRounds) < 5 * std::sqrt(pair * kRounds));
  const double variance = kExamples * kRate * (1 - kRate);
  CHECK(std::abs(size_squared - size * size - variance) < 5 * variance * std::sqrt(2.1 / kRounds));
}

TEST_CASE("a Poisson sample is a function of key and round, may be empty, and may be all") {
  PoissonSampler one(shard_of(100), 0.2, SecretKey::for_tests(1, 0));
  PoissonSampler same(shard_of(100), 0.2, SecretKey::for_tests(1, 0));
  PoissonSampler other(shard_of(100), 0.2, SecretKey::for_tests(1, 1));
  const auto at_seven = batch_of(one, 7);
  CHECK(batch_of(one, 8) != at_seven);
  CHECK(batch_of(same, 7) == at_seven);
  CHECK(batch_of(other, 7) != at_seven);
  PoissonSampler secret(shard_of(100), 0.2, SecretKey::fresh());
  CHECK(batch_of(secret, 7) != at_seven);
  CHECK(batch_of(secret, 7) == batch_of(secret, 7));
  PoissonSampler all(shard_of(100), 1, SecretKey::fresh());
  CHECK(batch_of(all, 0) == shard_of(100));
  PoissonSampler rare(shard_of(2), 1e-9, SecretKey::for_tests(1, 0));
  CHECK(batch_of(rare, 0).empty());
}

TEST_CASE("a clipped gradient is the mean where nothing is clipped, and 0 for an empty sample") {
  const auto data = load_task("digits,train=40,test=5");
  TaskOptions options{.model = "softmax", .batch = 40};
  const auto plain = TaskFactory(data, options).make(0);
  options.clipping = ExampleClipping{.clip_norm = 1e6, .test_seed = 1};
  const TaskFactory factory(data, options);
  CHECK(factory.sampling_rate() == 1);
  const auto clipped = factory.make(0);
  std::vector<float> x(plain->dimension());
  plain->initialize(x, 2);
  const auto expected = gradient_of(*plain, 0, x);
  const auto found = gradient_of(*clipped, 0, x);
  for (std::size_t k = 0; k < x.size(); ++k) {
    CHECK(std::abs(found[k] - expected[k]) < 1e-6F);
  }
  std::vector<float> half(x.size());
  std::vector<float> loss(2);
  loss[0] = static_cast<float>(plain->loss_and_gradient(0, x, half));
  loss[1] = static_cast<float>(clipped->loss_and_gradient(0, x, half));
  CHECK(loss[0] == doctest::Approx(loss[1]).epsilon(1e-5));

  options.batch = 1;
  const auto sparse = TaskFactory(data, options).make(0);
  bool saw_empty = false;
  for (Round round = 0; round < 40 && !saw_empty; ++round) {
    const auto g = gradient_of(*sparse, round, x);
    saw_empty = std::all_of(g.begin(), g.end(), [](float value) { return value == 0; });
  }
  CHECK(saw_empty);  // a chance of e^-40 that none is
}

TEST_CASE("data sets that differ by one example have gradients within C / batch") {
  constexpr double kClip = 0.05;
  constexpr std::size_t kBatch = 8;
  const auto data = load_task("digits,train=30,test=5")->dataset;
  const auto task_on = [&](const std::vector<std::uint32_t>& shard) {
    const ModelInput input{.features = data->features(), .classes = 10};
    auto inner = std::make_unique<SupervisedTask>(data, make_model("mlp:7", input),
                                                  Sampler(shard, kBatch, 1, 0), kBatch);
    return ClippedTask(std::move(inner), PoissonSampler(shard, 1, SecretKey::fresh()), kClip,
                       kBatch);
  };
  auto whole = task_on(shard_of(30));
  std::vector<float> x(whole.dimension());
  whole.initialize(x, 5);
  const auto all = gradient_of(whole, 0, x);
  for (std::uint32_t left_out = 0; left_out < 30; ++left_out) {
    auto shard = shard_of(30);
    shard.erase(shard.begin() + left_out);
    auto neighbour = task_on(shard);
    const auto without = gradient_of(neighbour, 0, x);
    double squares = 0;
    for (std::size_t k = 0; k < x.size(); ++k) {
      squares += std::pow(static_cast<double>(all[k]) - static_cast<double>(without[k]), 2);
    }
    // All examples of a new model have longer gradients than this: the bound is met.
    CHECK(std::sqrt(squares) == doctest::Approx(kClip / kBatch).epsilon(1e-4));
  }
}

TEST_CASE("tasks without examples that stand alone cannot hide one") {
  const Scratch scratch;
  TaskOptions options;
  options.clipping = ExampleClipping{};
  const auto quadratic =
      scratch.write("q.json", R"({"start": [1], "nodes": [{"h": [1], "c": [0]}]})");
  CHECK(
      contains(refusal([&] { TaskFactory(load_task("quadratic:" + quadratic.string()), options); }),
               "has no examples"));
  const auto text = scratch.write("t.txt", std::string(400, 'a') + std::string(400, 'b'));
  CHECK(contains(refusal([&] { TaskFactory(load_task("text:" + text.string()), options); }),
                 "share its characters"));
}

}  // namespace sotto::test::clipped_task_test
