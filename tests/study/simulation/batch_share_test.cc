// Batches by the nodes' speeds: equal ones change nothing, the mean is the union batch's gradient,
// nodes wait less, and plans try them.
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/study/plan/plan_search.h>
#include <sotto/study/plan/train_command.h>
#include <sotto/study/scenario/batch_speeds.h>
#include <sotto/study/simulation/simulated_run.h>
#include <sotto/study/train/batch_share.h>
#include <sotto/study/train/measured_shares.h>
#include <sotto/trainers/data/partition.h>
#include <sotto/trainers/data/sampler.h>
#include <sotto/trainers/run.h>
#include <sotto/trainers/tasks/supervised_task.h>

#include "support/seed.h"

namespace sotto::test::batch_share_test {

using namespace sotto::study;

namespace {

constexpr int kNodes = 4;
constexpr std::size_t kBatch = 8;

/// Four nodes, of which the last is so many times slower.
Scenario rack(double slower, const std::string& run, const std::string& more = "",
              const std::string& task = "") {
  return parse_scenario(
      "text", fmt::format("sotto-scenario = 1\nrun = [\"{}\"]\n{}[nodes]\ncount = {}\n"
                          "gradient = \"20 ms\"\nstragglers = [{{ nodes = \"3\", slower = {} }}]\n"
                          "[network]\nlink = \"lan\"\n[task]\ntask = \"digits,train=300,test=60\"\n"
                          "model = \"softmax\"\nbatch = {}\nrounds = 12\n{}",
                          run, more, kNodes, slower, kBatch, task));
}

SimulationResult simulated(const Scenario& scenario) {
  return simulate_run(scenario, scenario.runs.front()).result;
}

TrainOptions job(const std::string& share) {
  TrainOptions options;
  options.nodes = kNodes;
  options.task = "digits,train=300,test=60";
  options.model = "softmax";
  options.batch = kBatch;
  options.algorithm = "allreduce";
  options.rounds = 3;
  options.batch_share = share;
  return options;
}

void refused(const TrainOptions& options, const std::string& text) {
  try {
    (void)make_train_plan(options);
    FAIL("was taken: ", text);
  } catch (const Error& error) {
    CHECK(error.field() == "batch_share");
    CHECK_MESSAGE(std::string(error.what()).find(text) != std::string::npos, error.what());
  }
}

}  // namespace

TEST_CASE("batches of equally fast nodes are those without the setting, to the bit") {
  for (const std::string algorithm : {"allreduce", "sharded quant:8", "apmsqueeze freeze-step=4"}) {
    CAPTURE(algorithm);
    const auto plain = simulated(rack(1, algorithm));
    const auto shared = simulated(rack(1, algorithm + " batch-share=speed"));
    CHECK(shared.parameters_sha256 == plain.parameters_sha256);
    CHECK(shared.virtual_s == plain.virtual_s);
    CHECK(shared.bytes_sent == plain.bytes_sent);
  }
}

TEST_CASE("an epoch is as long with batches by speed as without") {
  TrainOptions options = job("");
  options.rounds.reset();
  options.epochs = 3;
  const Round rounds = make_train_plan(options).run.rounds;
  for (const std::string share : {"43,42,11,11", "11,11,42,43", "1,1000,1,1"}) {
    CAPTURE(share);
    options.batch_share = share;
    CHECK(make_train_plan(options).run.rounds == rounds);
  }
}

TEST_CASE("shares that do not fit are refused under their own name") {
  TrainOptions options = job("9,1,1,1");
  options.batch = 40'000;
  refused(options, "node 0 would have");
  options = job("4,4,1,1");
  options.batch = std::size_t{1} << 62U;
  CHECK_THROWS_WITH_AS((void)make_train_plan(options), doctest::Contains("batch"), Error);
}

TEST_CASE("the weighted mean of gradients is the gradient of the union of all batches") {
  const std::uint64_t seed = test::drawn_seed();
  CAPTURE(seed);
  TrainOptions options = job("4,2,1,1");
  options.seed = seed;
  const TrainPlan plan = make_train_plan(options);
  const std::vector<std::size_t> batches = {16, 8, 4, 4};
  REQUIRE(plan.tasks->options().batches == batches);
  CHECK(plan.run.weights == std::vector<double>{16, 8, 4, 4});

  const Dataset& data = *plan.tasks->data().dataset;
  const auto shards = partition_examples(data.train().labels(), data.classes(), kNodes,
                                         parse_partition("iid"), seed);
  const auto task = plan.tasks->make(0);
  std::vector<float> x(task->dimension());
  task->initialize(x, seed);
  std::vector<float> gradient(x.size());
  std::vector<double> mean(x.size());
  std::vector<std::uint32_t> rows;
  const Round round = 2;
  for (Rank rank = 0; rank < kNodes; ++rank) {
    const auto node = static_cast<std::size_t>(rank);
    (void)plan.task_of(rank)->loss_and_gradient(round, x, gradient);
    for (std::size_t k = 0; k < x.size(); ++k) {
      mean[k] += static_cast<double>(batches[node]) / 32 * static_cast<double>(gradient[k]);
    }
    Sampler sampler(shards[node], batches[node], seed, rank);
    const auto own = sampler.batch(round);
    rows.insert(rows.end(), own.begin(), own.end());
  }
  auto& all = dynamic_cast<SupervisedTask&>(*task);
  (void)all.loss_and_gradient_on(rows, x, gradient);
  for (std::size_t k = 0; k < x.size(); ++k) {
    REQUIRE(std::abs(mean[k] - static_cast<double>(gradient[k])) <= 1e-6);
  }
}

TEST_CASE("a slow node with fewer examples is waited for less") {
  for (const std::string algorithm : {"allreduce", "qmean quant:8", "sharded quant:8"}) {
    CAPTURE(algorithm);
    const auto plain = simulated(rack(4, algorithm));
    const auto shared = simulated(rack(4, algorithm + " batch-share=speed"));
    CHECK(shared.shares.idle < 0.5 * plain.shares.idle);
    CHECK(shared.virtual_s < 0.5 * plain.virtual_s);
    CHECK(shared.bytes_sent == plain.bytes_sent);
    CHECK(shared.history.back().loss < 1.2 * plain.history.back().loss);
  }
}

TEST_CASE("batches by speed take the time of their examples with and without gradients") {
  const auto full = simulated(rack(3, "allreduce batch-share=speed"));
  const auto timed = simulated(rack(3, "allreduce batch-share=speed", "timing-only = true\n"));
  CHECK(timed.virtual_s == full.virtual_s);
  // 32 examples at speeds 1, 1, 1, 1/3: 10, 10, 9 and 3, where 8 take 20 ms.
  const auto given = simulated(rack(3, "allreduce batch-share=10,10,9,3"));
  CHECK(full.virtual_s == given.virtual_s);
  CHECK(full.parameters_sha256 == given.parameters_sha256);
}

TEST_CASE("shares that are given have over threads the bits of the simulation") {
  const Scenario scenario = rack(4, "allreduce batch-share=speed");
  const TrainPlan plan = make_train_plan(options_of(scenario, scenario.runs.front()));
  RunOptions threads = plan.run;
  threads.optimizer.transport = "inproc";
  const auto real = run_threads(threads, [&](Rank rank) { return plan.unpaced_task_of(rank); }, {});
  REQUIRE_MESSAGE(real.ok(), real.status().message());
  CHECK(real->parameters_sha256 == simulated(scenario).parameters_sha256);
}

TEST_CASE("plans try batches by speed where some nodes are slow, and print the speeds") {
  const auto candidates = [](const Scenario& scenario) {
    PlanSearch search(
        {.lists = {.algorithms = {"allreduce", "dpsgd"}, .compressors = {}, .topologies = {}},
         .codec = "none",
         .budget = 4,
         .seeds = 1},
        scenario);
    const auto found = search.find();
    REQUIRE(found.ok());
    return *found;
  };
  const Scenario slow = rack(4, "allreduce", "", "lr = 0.1\n[target]\nloss = 1.5\n");
  bool tried = false;
  for (const PlannedRun& run : candidates(slow)) {
    if (const std::string* share = run.candidate.run.find("batch-share")) {
      tried = true;
      CHECK(*share == kShareBySpeed);
      CHECK(run.candidate.algorithm == "allreduce");
      REQUIRE(run.error());
      CHECK(std::abs(*run.error()) < 0.05);
      const std::string command = train_command(run.candidate.run, slow, 12);
      CHECK(command.find("--batch-share=1,1,1,0.25") != std::string::npos);
    }
  }
  CHECK(tried);
  CHECK(tries_batch_shares(slow));
  CHECK_FALSE(tries_batch_shares(rack(1, "allreduce")));
  CHECK_FALSE(tries_batch_shares(rack(4, "allreduce", "", "batch-share = \"2,2,2,1\"\n")));
}

TEST_CASE("shares that do not fit are refused") {
  refused(job("4,4,1"), "it has 3 speeds, and the job 4 nodes");
  refused(job("4,4,1,0"), "expected speed, or a speed for each node");
  refused(job("4,4,,1"), "expected speed, or a speed for each node");
  refused(job("fast"), "expected speed, or a speed for each node");
  refused(job("speed"), "here all nodes are on one machine");
  TrainOptions options = job("4,4,4,1");
  options.algorithm = "dpsgd";
  refused(options, "dpsgd mixes models of neighbours");
  options = job("4,4,4,1");
  options.weight = "examples";
  refused(options, "it does not go with weight");
  options = job("4,4,4,1");
  options.join = "stop";
  refused(options, "it does not go with join");
  options = job("4,4,4,1");
  options.clip_norm = 1;
  options.privacy_epsilon = 8;
  options.privacy_delta = 1e-5;
  refused(options, "noise is for batches of one size");
  CHECK_THROWS_AS((void)batch_speeds(parse_scenario(
                      "text",
                      "sotto-scenario = 1\nrun = [\"allreduce\"]\nnodes = { count = 2 }\n"
                      "[network]\nlink = \"lan\"\n[task]\ntask = \"digits\"\n")),
                  Error);
}

TEST_CASE("a speed is measured in examples a second and leaves later gradients alone") {
  const TrainPlan plan = make_train_plan(job(""));
  const auto measured = plan.task_of(1);
  std::vector<float> x(measured->dimension());
  measured->initialize(x, 0);
  const double speed = measure_speed(*measured, kBatch, x);
  CHECK(speed > 0);
  CHECK(std::isfinite(speed));
  std::vector<float> after(x.size());
  std::vector<float> fresh(x.size());
  (void)measured->loss_and_gradient(3, x, after);
  (void)plan.task_of(1)->loss_and_gradient(3, x, fresh);
  CHECK(after == fresh);
}

}  // namespace sotto::test::batch_share_test
